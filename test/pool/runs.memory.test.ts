import { createMemoryTable } from "./memory-table.ts";
import { describeRuns } from "./runs-contract.ts";

describeRuns("runs over the table in memory", async () => ({
  fresh: async () => createMemoryTable(),
  close: async () => {},
}));
