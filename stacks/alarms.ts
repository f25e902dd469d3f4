/**
 * What people are told of. Each alarm's meaning, and what to do, is in docs/operate.md under its name.
 *
 * The functions count samples, faults, orphans and failures of the sweep; the rest are the platform's own metrics.
 */
import { cleanup, failedPasses } from "./cleanup.ts";
import { readConfig } from "./config.ts";
import { endpoint } from "./endpoint.ts";
import { metricsNamespace, serviceName } from "./functions.ts";
import { table } from "./table.ts";

const config = readConfig($app.stage).alarms;

function createTopic(email: string) {
  const topic = new aws.sns.Topic("Alarms", { name: `${serviceName}-alarms` });
  new aws.sns.TopicSubscription("AlarmsEmail", { topic: topic.arn, protocol: "email", endpoint: email });
  return topic;
}

const topic = config.email === undefined ? undefined : createTopic(config.email);

type AlarmArgs = Omit<aws.cloudwatch.MetricAlarmArgs, "comparisonOperator"> &
  Partial<Pick<aws.cloudwatch.MetricAlarmArgs, "comparisonOperator">>;

function createAlarm(title: string, name: string, args: AlarmArgs) {
  return new aws.cloudwatch.MetricAlarm(`${title}Alarm`, {
    name: `${serviceName}-${name}`,
    comparisonOperator: "GreaterThanOrEqualToThreshold",
    treatMissingData: "notBreaching",
    ...(topic === undefined ? {} : { alarmActions: [topic.arn], okActions: [topic.arn] }),
    ...args,
  });
}

const counted = (metricName: string, periodS = 300) => ({
  namespace: metricsNamespace,
  metricName,
  dimensions: { service: serviceName },
  period: periodS,
  statistic: "Sum",
});

const ofFunction = (metricName: string, functionName: $util.Input<string>) => ({
  namespace: "AWS/Lambda",
  metricName,
  dimensions: { FunctionName: functionName },
  period: 300,
  statistic: "Sum",
});

const sumOf = (id: string, metric: { statistic: string } & Record<string, unknown>) => {
  const { statistic: stat, ...rest } = metric;
  return { id, metric: { ...rest, stat } as aws.types.input.cloudwatch.MetricAlarmMetricQueryMetric };
};

const cleanupName = cleanup.nodes.function.name;

createAlarm("FaultRatio", "fault-ratio", {
  alarmDescription: "Many samples got null: the platform failed, or cannot hold so many programs.",
  metricQueries: [
    sumOf("samples", counted("Samples")),
    sumOf("faults", counted("Faults")),
    {
      id: "ratio",
      label: "faults per sample",
      expression: `IF(samples >= ${config.faultRatioMinSamples}, FILL(faults, 0) / samples, 0)`,
      returnData: true,
    },
  ],
  threshold: config.faultRatio,
  evaluationPeriods: 1,
});

createAlarm("OrphansKilled", "orphans-killed", {
  alarmDescription: "The sweep killed sandboxes that no slot knew, more than crashes explain.",
  ...counted("OrphansKilled", 900),
  threshold: config.orphansKilled,
  evaluationPeriods: 1,
});

createAlarm("EndpointThrottles", "endpoint-throttles", {
  alarmDescription: "Batches were refused with 429: no container was free.",
  ...ofFunction("Throttles", endpoint.name),
  threshold: 1,
  evaluationPeriods: 1,
});

createAlarm("EndpointErrors", "endpoint-errors", {
  alarmDescription: "A batch ended without its answer: it ran into the time limit, or its container died.",
  ...ofFunction("Errors", endpoint.name),
  threshold: 1,
  evaluationPeriods: 1,
});

createAlarm("EndpointRefusals", "endpoint-refusals", {
  alarmDescription:
    "Requests were refused for a quarter of an hour: misconfigured, or neither table nor worker can be had.",
  metricQueries: [
    sumOf("answers", ofFunction("Url5xxCount", endpoint.name)),
    sumOf("batches", counted("BatchesRefused")), // streams among them, which are no 5xx
    {
      id: "both",
      label: "refusals",
      expression: "FILL(answers, 0) + FILL(batches, 0)",
      returnData: true,
    },
  ],
  threshold: 1,
  evaluationPeriods: 3,
});

createAlarm("TableThrottles", "table-throttles", {
  alarmDescription: "DynamoDB refused calls for their rate.",
  metricQueries: [
    ...["Read", "Write"].map((kind) =>
      sumOf(kind.toLowerCase(), {
        namespace: "AWS/DynamoDB",
        metricName: `${kind}ThrottleEvents`,
        dimensions: { TableName: table.name },
        period: 300,
        statistic: "Sum",
      }),
    ),
    { id: "both", label: "throttled calls", expression: "FILL(read, 0) + FILL(write, 0)", returnData: true },
  ],
  threshold: 1,
  evaluationPeriods: 1,
});

createAlarm("SweepFailures", "sweep-failures", {
  alarmDescription:
    "Passes of the sweep met faults for a quarter of an hour: what is not wanted may live on.",
  ...counted("SweepFailures"),
  threshold: 1,
  evaluationPeriods: 3,
});

createAlarm("SweepErrors", "sweep-errors", {
  alarmDescription: "A pass of the sweep died.",
  ...ofFunction("Errors", cleanupName),
  threshold: 1,
  evaluationPeriods: 1,
});

createAlarm("SweepMissing", "sweep-missing", {
  alarmDescription: "The sweep was not called for ten minutes.",
  ...ofFunction("Invocations", cleanupName),
  comparisonOperator: "LessThanThreshold",
  treatMissingData: "breaching",
  threshold: 1,
  evaluationPeriods: 2,
});

createAlarm("SweepUndelivered", "sweep-undelivered", {
  alarmDescription: "Passes of the sweep lie in the queue of those that failed.",
  namespace: "AWS/SQS",
  metricName: "ApproximateNumberOfMessagesVisible",
  dimensions: { QueueName: failedPasses.name },
  period: 300,
  statistic: "Maximum",
  threshold: 1,
  evaluationPeriods: 1,
});
