/** Idle share: the run pays for its part of the time in which workers had nothing to do. */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { isNotFinished, isRegistered, runExpression, runKey } from "./run-row.ts";

const neverShared = "attribute_not_exists(#idleUntilMs)";
const isNotShared = "#idleUntilMs < :untilMs";

export const idleShareExpression = runExpression({
  name: "add idle share",
  update: "SET #idleUntilMs = :untilMs ADD #idleMs :idleMs, #spentMs :idleMs",
  clauses: [isRegistered, isNotFinished, `(${neverShared} OR ${isNotShared})`],
});

/** Adds a share of the idle time up to `untilMs`; once, however often it is said. False when it was not added. */
export async function addIdleShare(
  ctx: Pick<SlotContext, "table">,
  runId: string,
  idleMs: number,
  untilMs: number,
): Promise<boolean> {
  const values = { ":idleMs": Math.round(idleMs), ":untilMs": untilMs };
  const stored = await writeRow(ctx.table, runKey(runId), idleShareExpression, values, () => true);
  return stored !== null;
}
