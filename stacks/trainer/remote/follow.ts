/** Following a job: its machine's log as it comes, until the machine or the job has ended. */
import type { JobStatus, JobStore } from "./job-store.ts";
import type { Machines } from "./machines.ts";

export interface FollowContext {
  readonly store: Pick<JobStore, "readLog" | "readStatus">;
  readonly machines: Pick<Machines, "isAlive">;
  readonly sleep: (ms: number) => Promise<void>;
  readonly write: (bytes: Uint8Array) => void;
}

export const followEveryMs = 5_000;
/** Looks at a machine that is gone, before its word is taken to be lost: AWS may not know a new one for a moment. */
const lastLooks = 4;

/** What became of the job; undefined when its machine went without a word. */
export async function followJob(ctx: FollowContext, machine: string): Promise<JobStatus | undefined> {
  let written = 0;
  let looksLeft = lastLooks;
  for (;;) {
    const status = await ctx.store.readStatus();
    const isOver = status?.machine === machine && status.state !== "running";
    // The log is kept before the status: what is read from here on is all of it.
    const bytes = await ctx.store.readLog(machine, written);
    written += bytes.length;
    if (bytes.length > 0) ctx.write(bytes);
    if (isOver) return status;
    looksLeft = (await ctx.machines.isAlive(machine)) ? lastLooks : looksLeft - 1;
    if (looksLeft === 0) return undefined;
    await ctx.sleep(followEveryMs);
  }
}
