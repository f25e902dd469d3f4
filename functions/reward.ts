/** The Lambda behind the function's URL. */
import { loadConfig } from "./config.ts";
import { createRewardHandler } from "./lambda/reward-handler.ts";

export const handler = createRewardHandler(() => loadConfig(process.env));
