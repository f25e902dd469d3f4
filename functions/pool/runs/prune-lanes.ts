/**
 * Prune: lanes of containers that are long gone leave a run's row.
 *
 * Containers of a former version add their batches to the row themselves, each through columns of its own, its lanes,
 * which hold the number of their last write: a later one must have a larger number, so none counts twice. The numbers
 * are times. Once one is longer ago than any container keeps a write under way, nothing can come through its lane.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { type RunRow, runExpression, runKey } from "./run-row.ts";

const laneLifeMs = 3_600_000;
const mostAtOnce = 20;

export interface StaleLane {
  readonly lane: string;
  readonly sequence: number;
}

/** Removes lanes that are as they were read. */
export function pruneExpression(lanes: readonly StaleLane[]) {
  const words = lanes.map((_, index) => `lane${index}`);
  return runExpression(
    {
      name: "prune lanes",
      update: `REMOVE ${words.map((word) => `#${word}`).join(", ")}`,
      clauses: words.map((word) => `#${word} = :${word}`),
    },
    Object.fromEntries(lanes.map(({ lane }, index) => [`lane${index}`, lane])),
  );
}

/** The run's lanes that nobody writes any more, as many as are removed at once. */
export function staleLanes(run: Pick<RunRow, "lanes">, nowMs: number): StaleLane[] {
  return Object.entries(run.lanes)
    .filter(([, sequence]) => sequence < nowMs - laneLifeMs)
    .map(([lane, sequence]) => ({ lane, sequence }))
    .slice(0, mostAtOnce);
}

/** Prunes one run's row; whether anything was removed. */
export async function pruneLanes(
  { table }: Pick<SlotContext, "table">,
  run: Pick<RunRow, "runId" | "lanes">,
  nowMs: number,
): Promise<boolean> {
  const lanes = staleLanes(run, nowMs);
  if (lanes.length === 0) return false;
  const values = Object.fromEntries(lanes.map(({ sequence }, index) => [`:lane${index}`, sequence]));
  return (await writeRow(table, runKey(run.runId), pruneExpression(lanes), values, () => true)) !== null;
}
