/** What is logged of a fault, whoever met it. */
import { expect, it } from "vitest";
import { createLineLog } from "../../functions/log-lines.ts";
import { attempt, newSweepLog } from "../../functions/pool/sweep/report.ts";
import { Fault } from "../../functions/rewards/faults.ts";

async function metBySweep(error: unknown): Promise<unknown> {
  const log = newSweepLog();
  await attempt(log, "list", () => Promise.reject(error));
  return log.faults[0];
}

it.each<{ who: string; fault: () => unknown; line: object }>([
  {
    who: "a batch",
    fault: () => new Fault("store_unavailable", "DynamoDB did not answer: ECONNRESET"),
    line: { code: "store_unavailable", detail: "DynamoDB did not answer: ECONNRESET" },
  },
  {
    who: "a run's end",
    fault: () => metBySweep(new Fault("sandbox_unavailable", "E2B was too busy")),
    line: { action: "list", code: "sandbox_unavailable", detail: "E2B was too busy" },
  },
  { who: "a bug", fault: () => new TypeError("x"), line: { code: "internal", detail: /^TypeError: x\n/ } },
  { who: "a bug in the sweep", fault: () => metBySweep(new TypeError("x")), line: { code: "internal" } },
])("of one that $who met, its code and what happened", async ({ fault, line }) => {
  const lines: string[] = [];
  createLineLog((text) => lines.push(text)).reportPool({ kind: "fault", fault: await fault() });
  const { detail, ...expected } = line as { detail?: string | RegExp };
  const logged = JSON.parse(lines.join(""));
  expect(logged).toMatchObject({ level: "warn", message: "fault in the pool", ...expected });
  if (detail !== undefined) expect(logged.detail).toMatch(detail);
});
