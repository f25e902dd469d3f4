/**
 * The sweep, every minute.
 *
 * A pass that can't be delivered or that fails is tried again, and then kept in a queue: the next pass heals what it
 * left, so what lies there is for people to read, and an alarm tells them.
 */
import { functionParts, serviceName } from "./functions.ts";

export const failedPasses = new aws.sqs.Queue("CleanupFailures", {
  name: `${serviceName}-cleanup-failures`,
  messageRetentionSeconds: 14 * 86_400,
  sqsManagedSseEnabled: true,
});

// It serves nobody, so it is given no keys to compare.
const parts = functionParts({ title: "Cleanup", name: "cleanup", auth: "aws_iam" });

export const cleanup = new sst.aws.CronV2("Cleanup", {
  schedule: "rate(1 minute)",
  retries: 2,
  dlq: failedPasses.arn,
  function: {
    ...parts,
    handler: "functions/cleanup.handler",
    description: "Sweeps the pool of workers",
    timeout: "2 minutes",
    memory: "512 MB",
    permissions: [...parts.permissions, { actions: ["sqs:SendMessage"], resources: [failedPasses.arn] }],
    // The schedule only hands a pass over: what the function does of it is retried and kept by the platform's queue.
    retries: 1,
    transform: {
      ...parts.transform,
      eventInvokeConfig: (invoke: aws.lambda.FunctionEventInvokeConfigArgs): undefined => {
        invoke.maximumEventAgeInSeconds = 120;
        invoke.destinationConfig = { onFailure: { destination: failedPasses.arn } };
      },
    },
  },
});
