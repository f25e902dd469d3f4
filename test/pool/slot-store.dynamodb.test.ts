import { vi } from "vitest";
import { openDynalite } from "./dynalite-table.ts";
import { describeLostAnswers } from "./lost-answers-contract.ts";
import { describeSlotStore } from "./slot-store-contract.ts";
import { describeTable } from "./table-contract.ts";

vi.setConfig({ testTimeout: 60_000 }); // hundreds of requests in one process, perhaps on a busy machine

describeTable("DynamoDB's protocol", openDynalite);
describeSlotStore("slots over DynamoDB's protocol", openDynalite);
describeLostAnswers("DynamoDB's protocol", openDynalite);
