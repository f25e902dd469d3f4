import { describeLostAnswers } from "./lost-answers-contract.ts";
import { createMemoryTable } from "./memory-table.ts";
import { describeSlotStore } from "./slot-store-contract.ts";
import { describeTable } from "./table-contract.ts";

const open = async () => ({ fresh: async () => createMemoryTable(), close: async () => {} });

describeTable("the table in memory", open);
describeSlotStore("slots over the table in memory", open);
describeLostAnswers("the table in memory", open);
