/** Two endpoints over one table and one E2B, whose clocks differ. */
import { expect, it } from "vitest";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";
import type { Clock } from "../../functions/rewards/ports.ts";
import { useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome } from "./known-batch.ts";

const behind = useFaultyStack({ slots: 6 });

const skewed = (byMs: number): Clock => ({
  nowMs: () => systemClock.nowMs() + byMs,
  sleep: systemClock.sleep,
});

async function startOther(clock: Clock): Promise<LocalStack> {
  const { direct, dynamoDb, stack } = behind();
  const { apiKey } = stack;
  const dynamoDbEndpoint = dynamoDb.endpoint;
  return startLocalStack({
    port: 0,
    apiKey,
    slots: 6,
    plan: "pro",
    cron: false,
    e2b: direct,
    dynamoDbEndpoint,
    clock,
  });
}

it.each([
  { byMs: 3_000, isWithinGrace: true },
  { byMs: -3_000, isWithinGrace: true },
  { byMs: 3_600_000, isWithinGrace: false },
  { byMs: -3_600_000, isWithinGrace: false },
])("a clock that is off by $byMs ms makes no reward a wrong number", async ({ byMs, isWithinGrace }) => {
  const other = await startOther(skewed(byMs));
  try {
    const asks = [behind().stack, other, behind().stack, other].map((stack) => askForRewards(stack));
    // Who is an hour ahead takes leases for expired, and the work of others away from them; that costs rewards at most.
    for (const answer of await Promise.all(asks)) {
      if (isWithinGrace) expectOutcome(answer, "right");
      else expect([200, 503]).toContain(answer.status);
    }
    expectOutcome(await askForRewards(other), "right");
  } finally {
    await other.close();
  }
});
