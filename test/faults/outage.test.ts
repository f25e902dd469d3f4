/**
 * E2B refuses everything for a while: its API, the services in its sandboxes, and the way to workers.
 *
 * The short one is in every run; with `CODE_REWARDS_LONG_TESTS=1` E2B is out of order for two minutes.
 */
import { describe, expect, it } from "vitest";
import { countInjected, readSlots, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome, type KnownAnswer } from "./known-batch.ts";
import type { Fault } from "./proxy/fault.ts";

const isLong = process.env.CODE_REWARDS_LONG_TESTS === "1";

/** With the pauses of production. */
const behind = useFaultyStack({ random: Math.random, cron: true });

const refusals: readonly Fault[] = [
  { kind: "answer", status: 429 },
  { kind: "answer", status: 503 },
  { kind: "answer", status: 500 },
];

/** Nothing was started: either the whole batch is refused, or each sample is. */
function expectNothing({ status, headers, body }: KnownAnswer): void {
  if (status === 503) {
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    return;
  }
  expect(status).toBe(200);
  expect(new Set(body.rewards)).toEqual(new Set([null, 0])); // the 0 is of the sample without a program
  expect(body.rewards?.filter((reward) => reward === 0)).toHaveLength(1);
}

describe.each([
  { outageMs: 10_000, patientMs: 45_000, impatientMs: 4_000, runs: !isLong },
  { outageMs: 120_000, patientMs: 300_000, impatientMs: 30_000, runs: isLong },
])("E2B refuses everything for $outageMs ms", ({ outageMs, patientMs, impatientMs, runs }) => {
  it.runIf(runs)(
    "and batches that have time are graded right, others are told to come again",
    async () => {
      expectOutcome(await askForRewards(behind().stack), "right");
      expect((await readSlots(behind())).some(({ state }) => state === "ready")).toBe(true);
      behind().proxy.requests.length = 0;
      const rule = behind().proxy.add({
        path: ["control", "envd", "supervisor"],
        match: { windowMs: [0, outageMs] },
        fault: (_, nth) => refusals[nth % refusals.length] ?? null,
      });
      // One has the worker that there is and can't reach it; for others one would have to be created.
      const patient = [1, 2, 3].map(() => askForRewards(behind().stack, { deadlineMs: patientMs }));
      const impatient = [1, 2].map(() => askForRewards(behind().stack, { deadlineMs: impatientMs }));
      for (const answer of await Promise.all(impatient)) expectNothing(answer);
      for (const answer of await Promise.all(patient)) expectOutcome(answer, "right");
      expect(countInjected([rule])).toBeGreaterThan(5);
      const creations = rule.injected.filter(
        ({ request }) => request.url === "/v2/sandboxes" && request.method === "POST",
      );
      expect(creations.length, "creations that were tried meanwhile").toBeLessThan(5 + outageMs / 3_000);
    },
    patientMs + 60_000,
  );
});
