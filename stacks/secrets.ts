/** Set by `sst secret set NAME value --stage X`; a deployment without them stops and says which is missing. */
import { readConfig } from "./config.ts";

export const e2bApiKey = new sst.Secret("E2bApiKey");

/** Several, separated by commas, while one is replaced. None where callers sign their requests. */
export const rewardApiKeys =
  readConfig($app.stage).endpoint.auth === "bearer" ? new sst.Secret("RewardApiKeys") : undefined;
