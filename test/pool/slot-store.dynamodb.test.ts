import { openDynalite } from "./dynalite-table.ts";
import { describeSlotStore } from "./slot-store-contract.ts";
import { describeTable } from "./table-contract.ts";

describeTable("DynamoDB's protocol", openDynalite);
describeSlotStore("slots over DynamoDB's protocol", openDynalite);
