import { createHash } from "node:crypto";

/**
 * Which of a task's test cases are run when not all are: indexes in the task's order.
 *
 * The choice hangs on the tests and on nothing else, so that all samples of a group, in whatever batch, at whatever
 * time, are graded on the same ones. A larger choice contains every smaller one. Cases that count for nothing come
 * last.
 *
 * @param testsHash Of the tests' content.
 * @param weights What each case counts for; null: all the same.
 */
export function chooseTests(
  testsHash: string,
  count: number,
  wanted: number,
  weights: readonly number[] | null,
): number[] {
  const all = Array.from({ length: count }, (_, index) => index);
  if (wanted >= count) return all;
  const ranks = all.map((index) => createHash("sha256").update(`${testsHash} ${index}`).digest("hex"));
  const isIdle = (index: number) => (weights?.[index] === 0 ? 1 : 0);
  return all
    .sort((a, b) => isIdle(a) - isIdle(b) || compareTexts(ranks[a] ?? "", ranks[b] ?? ""))
    .slice(0, wanted)
    .sort((a, b) => a - b);
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
