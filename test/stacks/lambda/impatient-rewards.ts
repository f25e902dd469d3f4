/** The endpoint's function with leases that are over soon, so that a process needn't be frozen for minutes. */
import { loadConfig } from "../../../functions/config.ts";
import { createRewardHandler } from "../../../functions/lambda/reward-handler.ts";

export const handler = createRewardHandler(() => ({
  ...loadConfig(process.env),
  poolTimes: { leaseMs: 3_000, extendEveryMs: 1_000, graceMs: 500, pollMs: 200 },
}));
