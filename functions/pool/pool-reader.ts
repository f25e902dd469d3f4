/** One container's looks at the pool: all who wait in it look at the same one, and what was last seen is remembered. */
import { type PoolView, readPool } from "./pool-view.ts";
import type { SlotContext } from "./slots/write.ts";
import { typicalWaitMs } from "./turns.ts";
import type { WaitingLine } from "./waiting-line.ts";

export interface SharedView {
  readonly view: PoolView;
  readonly seenAtMs: number;
  /** Free and expired workers that one of this container has gone for: the others would come too late. */
  readonly tried: Set<number>;
  /** Workers that runs have got here since. */
  readonly taken: Map<string, number>;
}

export interface PoolReader {
  /** Joins the read that is under way. Throws the table's faults. */
  read(): Promise<SharedView>;
  /** What was seen last, whoever looked; null before the first look. */
  last(): SharedView | null;
  /** How long one waited for a worker then. */
  typicalWaitMs(): number;
}

/** Counts a worker for a run, or takes it back (-1), for all who decide by a look that does not show it. */
export function countTaken(
  line: WaitingLine,
  seen: SharedView | null,
  runTag: string,
  workers: 1 | -1,
): void {
  seen?.taken.set(runTag, (seen.taken.get(runTag) ?? 0) + workers);
  line.noteTaken(runTag, workers);
}

export function createPoolReader(ctx: SlotContext): PoolReader {
  let reading: Promise<SharedView> | null = null;
  let last: SharedView | null = null;
  let typicalMs = 0;

  async function read(): Promise<SharedView> {
    const view = await readPool(ctx);
    const seenAtMs = ctx.clock.nowMs();
    typicalMs = typicalWaitMs(view, seenAtMs);
    last = { view, seenAtMs, tried: new Set(), taken: new Map() };
    return last;
  }

  return {
    read() {
      reading ??= read().finally(() => {
        reading = null;
      });
      return reading;
    },
    last: () => last,
    typicalWaitMs: () => typicalMs,
  };
}
