/**
 * A world of incidents: now and then every sandbox ends at once, in the middle of batches and while there are none, and
 * nothing else fails. Then what an incident costs is one resend: a null that lasts is the product's own.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Gate } from "./gate.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import type { StackUnderTest } from "./stack-under-test.ts";

/** Every so manieth strikes while no batch is under way. */
const idleEvery = 3;

export interface IncidentsPlan {
  readonly count: number;
  readonly seconds: number;
  readonly random: Random;
}

/** Resolves after the last one, or once the soak is over. */
export async function haveIncidents(
  stack: StackUnderTest,
  ledger: Ledger,
  gate: Gate,
  { count, seconds, random }: IncidentsPlan,
  over: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  const everyMs = (seconds * 1_000) / count;
  const pause = (ms: number) => sleep(Math.max(0, ms), undefined, { signal: over }).catch(() => {});
  for (let i = 0; i < count; i += 1) {
    const atMs = (i + 0.2 + 0.5 * random.next()) * everyMs;
    await pause(startedMs + atMs - performance.now());
    const isIdle = i % idleEvery === idleEvery - 1;
    if (isIdle) await gate.closeUntilIdle();
    else {
      await gate.untilBusy();
      await pause(random.integer(0, 1_500));
    }
    if (over.aborted) return gate.open();
    const killed = await gate.strike(stack.killAllSandboxes);
    ledger.counts.incidents += 1;
    ledger.note(isIdle ? "incident while idle" : "incident in mid-batch");
    for (let n = 0; n < killed; n += 1) ledger.note("sandbox ended by an incident");
    gate.open();
  }
}
