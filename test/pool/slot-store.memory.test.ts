import { createMemoryTable } from "./memory-table.ts";
import { describeSlotStore } from "./slot-store-contract.ts";

describeSlotStore("slots over the table in memory", async () => ({
  fresh: async () => createMemoryTable(),
  close: async () => {},
}));
