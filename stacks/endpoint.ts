/** The reward endpoint: a function's URL, which streams and allows a quarter of an hour. */
import { readConfig } from "./config.ts";
import { functionParts } from "./functions.ts";
import { rewardApiKeys } from "./secrets.ts";

const { auth, memoryMib, reservedConcurrency } = readConfig($app.stage).endpoint;
const parts = functionParts({ title: "Rewards", name: "rewards", auth });

export const endpoint = new sst.aws.Function("Rewards", {
  ...parts,
  handler: "functions/reward.handler",
  description: "Grades batches of completions",
  timeout: "15 minutes",
  memory: `${memoryMib} MB`,
  streaming: true,
  url: { authorization: auth === "aws_iam" ? "iam" : "none", cors: false },
  ...(reservedConcurrency === undefined ? {} : { concurrency: { reserved: reservedConcurrency } }),
  link: rewardApiKeys === undefined ? parts.link : [...parts.link, rewardApiKeys],
});
