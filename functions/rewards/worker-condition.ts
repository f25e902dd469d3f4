/** What a chunk's end says of its worker. */
import type { Fault } from "./faults.ts";

/** Whether the chunk's worker may be used again; one that was not reached may be, but by others than just now. */
export type ChunkCondition = "healthy" | "broken" | "unreached";

/** Where only the way to the worker broke, or the table was not there to be asked, the worker is as good as any. */
export function conditionAfterFault({ code }: Fault): "broken" | "unreached" {
  return code === "sandbox_unavailable" || code === "store_unavailable" ? "unreached" : "broken";
}
