import { vi } from "vitest";
import { openDynalite } from "./dynalite-table.ts";
import { describeRuns } from "./runs-contract.ts";

vi.setConfig({ testTimeout: 60_000 }); // hundreds of requests in one process, perhaps on a busy machine

describeRuns("runs over DynamoDB's protocol", openDynalite);
