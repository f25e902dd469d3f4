/** Whose turn it is, of those who wait in one container. */
import { expect, it } from "vitest";
import { createWaitingLine, type Waiter } from "../../functions/pool/waiting-line.ts";

const nowMs = 1_800_000_000_000;

function waiter(batchTag: string, waitedMs: number, leftMs: number): Waiter {
  const startedAtMs = nowMs - waitedMs;
  const holder = { runTag: "run", batchTag };
  return { holder, startedAtMs, deadlineAtMs: nowMs + leftMs, runRoom: 1, creation: null };
}

it.each([
  { what: "the one who has waited longest", old: waiter("old", 60_000, 540_000), served: "old" },
  { what: "nobody whose long time is nearly up", old: waiter("old", 596_000, 4_000), served: "young" },
  { what: "nobody whose short time is nearly up", old: waiter("old", 2_500, 500), served: "young" },
  { what: "one who has a third of a short time left", old: waiter("old", 2_000, 1_000), served: "old" },
])("a worker goes to $what", ({ old, served }) => {
  const line = createWaitingLine();
  for (const one of [waiter("young", 1_000, 599_000), old]) line.enter(one);
  expect(line.first("run", nowMs)?.waiter.holder.batchTag).toBe(served);
});

it("and to nobody when the time of all is nearly up: whoever comes next may have it", () => {
  const line = createWaitingLine();
  line.enter(waiter("old", 2_500, 500));
  expect(line.first("run", nowMs)).toBeNull();
});
