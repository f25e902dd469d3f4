/**
 * What must hold of a deployment, as rules over its resources: the graph's test asks that each holds, the mutants' test
 * that each change for the worse breaks one.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { ttlColumn } from "../../functions/adapters/dynamodb-setup.ts";
import { loadConfig } from "../../functions/config.ts";
import { renderEnvironmentTypes } from "./environment-types.ts";
import type { Graph, Resource } from "./graph.ts";
import { secretValues } from "./graph.ts";
import { projectRoot } from "./platform.ts";
import { allowances, environmentOf, resourcesOf, theResource, trustedBy } from "./reading.ts";
import { type Rule, rule } from "./rule.ts";
import { everySetting } from "./scenes.ts";
import { trainerRules } from "./trainer-rules.ts";

const lambda = "aws:lambda/function:Function";
const table = expect.stringMatching(
  /^arn:aws:dynamodb:us-east-1:123456789012:table\/code-rewards-ci-PoolTable-\w+$/,
);

const endpointRules: readonly Rule[] = [
  rule("plain", "the endpoint streams, to callers with a key, for a quarter of an hour", (graph) => {
    expect(theResource(graph, "aws:lambda/functionUrl:FunctionUrl").inputs).toEqual({
      authorizationType: "NONE",
      functionName: theResource(graph, lambda, "RewardsFunction").inputs.name,
      invokeMode: "RESPONSE_STREAM",
    });
    expect(theResource(graph, lambda, "RewardsFunction").inputs).toMatchObject({
      timeout: 900,
      memorySize: 1_769,
      architectures: ["arm64"],
    });
    // In a VPC a URL doesn't stream; a share of the account's concurrency is not taken unasked.
    for (const absent of ["vpcConfig", "reservedConcurrentExecutions"]) {
      expect(theResource(graph, lambda, "RewardsFunction").inputs).not.toHaveProperty(absent);
    }
    expect(environmentOf(graph, "RewardsFunction").CODE_REWARDS_AUTH).toBe("bearer");
  }),
  rule("plain", "anybody may reach its URL, and only that", (graph) => {
    const permissions = resourcesOf(graph, "aws:lambda/permission:Permission").map(({ inputs }) => inputs);
    expect(permissions).toEqual([
      expect.objectContaining({ action: "lambda:InvokeFunctionUrl", functionUrlAuthType: "NONE" }),
      expect.objectContaining({ action: "lambda:InvokeFunction", invokedViaFunctionUrl: true }),
    ]);
  }),
  rule("signed", "with AWS_IAM its URL wants signatures, and there are no keys", (graph) => {
    const url = theResource(graph, "aws:lambda/functionUrl:FunctionUrl").inputs;
    expect(url).toMatchObject({ authorizationType: "AWS_IAM", invokeMode: "RESPONSE_STREAM" });
    expect(resourcesOf(graph, "aws:lambda/permission:Permission")).toEqual([]);
    expect(environmentOf(graph, "RewardsFunction").CODE_REWARDS_AUTH).toBe("aws_iam");
    expect(resourcesOf(graph, "sst:sst:Secret").map(({ name }) => name)).toEqual(["E2bApiKey"]);
  }),
  rule("plain", "both functions run on a Node that AWS's own client will go on supporting", (graph) => {
    const runtimes = resourcesOf(graph, lambda).map(({ inputs }) =>
      Number(/^nodejs(\d+)/.exec(inputs.runtime)?.[1]),
    );
    expect(runtimes).toHaveLength(2);
    expect(Math.min(...runtimes)).toBeGreaterThanOrEqual(22);
  }),
  rule(
    "plain",
    "both functions' handlers exist, and bring the supervisor where they look for it",
    (graph) => {
      expect(graph.builds.map(({ functionID, handler }) => [functionID, handler]).toSorted()).toEqual([
        ["CleanupHandler", "functions/cleanup.handler"],
        ["Rewards", "functions/reward.handler"],
      ]);
      for (const { handler, copyFiles } of graph.builds) {
        const source = readFileSync(join(projectRoot, handler.replace(".handler", ".ts")), "utf8");
        expect(source).toMatch(/export (const|async function) handler\b/);
        expect(copyFiles).toEqual([expect.objectContaining({ to: "supervisor" })]);
        expect(copyFiles[0]?.from).toMatch(/functions\/supervisor$/);
      }
      for (const name of ["RewardsFunction", "CleanupHandlerFunction"]) {
        expect(environmentOf(graph, name).CODE_REWARDS_SUPERVISOR_FOLDER).toBe("supervisor");
      }
    },
  ),
  rule("full", "how many batches there may be at once, and their memory, are settings", (graph) => {
    expect(theResource(graph, lambda, "RewardsFunction").inputs).toMatchObject({
      reservedConcurrentExecutions: everySetting.endpoint.reservedConcurrency,
      memorySize: everySetting.endpoint.memoryMib,
    });
  }),
];

const cleanupRules: readonly Rule[] = [
  rule(
    "plain",
    "the sweep is called every minute; what can't be delivered is tried again and kept",
    (graph) => {
      const { scheduleExpression, state, flexibleTimeWindow, target } = theResource(
        graph,
        "aws:scheduler/schedule:Schedule",
      ).inputs;
      expect({ scheduleExpression, state, flexibleTimeWindow }).toEqual({
        scheduleExpression: "rate(1 minute)",
        state: "ENABLED",
        flexibleTimeWindow: { mode: "OFF" },
      });
      expect(target).toMatchObject({
        arn: expect.stringContaining(":function:code-rewards-ci-CleanupHandlerFunction-"),
        retryPolicy: { maximumRetryAttempts: 2 },
        deadLetterConfig: { arn: expect.stringMatching(/:code-rewards-ci-cleanup-failures$/) },
      });
    },
  ),
  rule("plain", "a pass that fails is tried again and kept, and has time to end", (graph) => {
    const config = theResource(
      graph,
      "aws:lambda/functionEventInvokeConfig:FunctionEventInvokeConfig",
    ).inputs;
    expect(config).toMatchObject({
      functionName: theResource(graph, lambda, "CleanupHandlerFunction").inputs.name,
      maximumRetryAttempts: 1,
      destinationConfig: {
        onFailure: { destination: expect.stringMatching(/:code-rewards-ci-cleanup-failures$/) },
      },
    });
    expect(theResource(graph, lambda, "CleanupHandlerFunction").inputs.timeout).toBe(120);
    expect(theResource(graph, "aws:sqs/queue:Queue").inputs).toMatchObject({
      messageRetentionSeconds: 1_209_600,
      sqsManagedSseEnabled: true,
    });
  }),
];

/** What the functions do to the table, read where they do it. */
function tableActions(): string[] {
  const adapter = readFileSync(join(projectRoot, "functions/adapters/dynamodb-table.ts"), "utf8");
  const commands = [...adapter.matchAll(/new (\w+)Command\(/g)].map(([, name]) => `dynamodb:${name}`);
  return [...new Set(commands)].toSorted();
}

const logsOf = (name: string): [string[], string[]] => [
  ["logs:CreateLogStream", "logs:PutLogEvents"],
  [`arn:aws:logs:us-east-1:123456789012:log-group:/code-rewards/ci/${name}:*`],
];
const queue = "arn:aws:sqs:us-east-1:123456789012:code-rewards-ci-cleanup-failures";

const accessRules: readonly Rule[] = [
  rule("plain", "the endpoint may use its table and write its log, and nothing else", (graph) => {
    expect(allowances(graph, "RewardsRole")).toEqual([[tableActions(), [table]], logsOf("rewards")]);
  }),
  rule("plain", "the sweep may use the table, write its log and keep failures, and nothing else", (graph) => {
    const kept = [["sqs:SendMessage"], [queue]];
    expect(allowances(graph, "CleanupHandlerRole")).toEqual([
      [tableActions(), [table]],
      logsOf("cleanup"),
      kept,
    ]);
  }),
  rule("plain", "the schedule may call the sweep and keep failures, and nothing else", (graph) => {
    const sweep = expect.stringContaining(":function:code-rewards-ci-CleanupHandlerFunction-");
    expect(allowances(graph, "CleanupRole")).toEqual([
      [["lambda:InvokeFunction"], [sweep]],
      [["sqs:SendMessage"], [queue]],
    ]);
  }),
  rule(
    "plain",
    "roles are assumed by their service alone, and have no policy of the platform's making",
    (graph) => {
      const trusted = resourcesOf(graph, "aws:iam/role:Role").map(({ name }) => [
        name,
        trustedBy(graph, name),
      ]);
      expect(Object.fromEntries(trusted)).toEqual({
        RewardsRole: [{ Service: "lambda.amazonaws.com" }],
        CleanupHandlerRole: [{ Service: "lambda.amazonaws.com" }],
        CleanupRole: [{ Service: "scheduler.amazonaws.com" }],
      });
      expect(JSON.stringify(graph.resources)).not.toContain("iam::aws:policy/");
    },
  ),
];

const secretRules: readonly Rule[] = [
  rule("plain", "secrets are in the functions' links, and in nothing else that is made", (graph) => {
    const values = Object.values(secretValues).flatMap((value) => value.split(","));
    const holders = graph.resources.filter(({ inputs }) => {
      const text = JSON.stringify(inputs);
      return values.some((value) => text.includes(value));
    });
    expect(holders.map(({ type, name }) => `${type} ${name}`).toSorted()).toEqual([
      "sst:sst:LinkRef E2bApiKeyLinkRef",
      "sst:sst:LinkRef RewardApiKeysLinkRef",
    ]);
    expect(JSON.stringify(graph.outputs)).not.toMatch(new RegExp(values.join("|")));
  }),
  rule("plain", "each function is linked to the secrets that it uses", (graph) => {
    const links = graph.builds.map(({ functionID, links }) => [functionID, Object.keys(links).toSorted()]);
    expect(Object.fromEntries(links)).toEqual({
      Rewards: ["E2bApiKey", "RewardApiKeys"],
      CleanupHandler: ["E2bApiKey"],
    });
  }),
  rule("plain", "sst-env.d.ts is the one that a deployment would write", (graph) => {
    expect(readFileSync(join(projectRoot, "sst-env.d.ts"), "utf8")).toBe(renderEnvironmentTypes(graph));
  }),
];

/** What a function has of its environment, and what SST's reader adds. */
function configOf(graph: Graph, functionName: string) {
  const { SST_RESOURCE_App: _, ...environment } = environmentOf(graph, functionName);
  const secrets = { E2B_API_KEY: "e2b-key", CODE_REWARDS_API_KEYS: "key" };
  return loadConfig({ ...environment, ...secrets });
}

const settingRules: readonly Rule[] = [
  rule("plain", "both functions understand what they are told", (graph) => {
    for (const name of ["RewardsFunction", "CleanupHandlerFunction"]) {
      expect(configOf(graph, name)).toMatchObject({
        tableName: theResource(graph, "aws:dynamodb/table:Table").inputs.name,
        plan: { slots: 20, createIntervalMs: 1_100, lifeMs: 3_600_000 },
        worker: { vcpus: 2, memoryMib: 512 },
        rates: { usdPerVcpuHour: 0.0504, usdPerGibHour: 0.0162 },
      });
    }
  }),
  rule("full", "every setting of the pool reaches both functions", (graph) => {
    const { e2b } = everySetting;
    for (const name of ["RewardsFunction", "CleanupHandlerFunction"]) {
      expect(configOf(graph, name)).toMatchObject({
        e2b: { template: e2b.template, domain: e2b.domain, apiUrl: e2b.apiUrl, sandboxUrl: e2b.sandboxUrl },
        plan: { slots: e2b.slots, createIntervalMs: e2b.createIntervalMs, lifeMs: e2b.lifeMs },
        worker: { vcpus: e2b.workerVcpus, memoryMib: e2b.workerMemoryMib },
        rates: { usdPerVcpuHour: e2b.usdPerVcpuHour, usdPerGibHour: e2b.usdPerGibHour },
      });
      expect(environmentOf(graph, name).POWERTOOLS_LOG_LEVEL).toBe("DEBUG");
    }
  }),
  rule("plain", "the table has the keys and the time to live that the pool writes", (graph) => {
    expect(theResource(graph, "aws:dynamodb/table:Table").inputs).toMatchObject({
      hashKey: "pk",
      rangeKey: "sk",
      billingMode: "PAY_PER_REQUEST",
      ttl: { attributeName: ttlColumn, enabled: true },
    });
  }),
  rule("plain", "what is logged is kept for a time, in a log of each function's own", (graph) => {
    const kept = resourcesOf(graph, "aws:cloudwatch/logGroup:LogGroup").map(({ inputs }) => inputs);
    expect(kept.map(({ name, retentionInDays }) => [name, retentionInDays])).toEqual([
      ["/code-rewards/ci/rewards", 30],
      ["/code-rewards/ci/cleanup", 30],
    ]);
    const written = resourcesOf(graph, lambda).map(({ inputs }) => inputs.loggingConfig.logGroup);
    expect(written.toSorted()).toEqual(kept.map(({ name }) => name).toSorted());
  }),
  rule("full", "how long it is kept is a setting", (graph) => {
    const days = resourcesOf(graph, "aws:cloudwatch/logGroup:LogGroup").map(
      ({ inputs }) => inputs.retentionInDays,
    );
    expect(days).toEqual([7, 7]);
  }),
];

/** SST's letters: no word of ours is made of them alone. */
const randomSuffix = /-[abcdefhkmnorstuvwxz]{8}$/;

/** What an alarm looks at: `namespace metric dimensions`, one for each metric of its expression. */
function watched({ inputs }: Resource): string[] {
  const queries = (inputs.metricQueries ?? []) as { metric?: Record<string, unknown> }[];
  const metrics = inputs.metricName === undefined ? queries.flatMap(({ metric }) => metric ?? []) : [inputs];
  return metrics.map(({ namespace, metricName, dimensions }) => {
    const [[dimension, value] = []] = Object.entries(dimensions);
    return `${namespace} ${metricName} ${dimension}=${String(value).replace(randomSuffix, "")}`;
  });
}

const alarmType = "aws:cloudwatch/metricAlarm:MetricAlarm";
const endpointFunction = "FunctionName=code-rewards-ci-RewardsFunction";
const cleanupFunction = "FunctionName=code-rewards-ci-CleanupHandlerFunction";
const tableName = "TableName=code-rewards-ci-PoolTable";

const alarmRules: readonly Rule[] = [
  rule("plain", "each alarm looks at what there is", (graph) => {
    const alarms = resourcesOf(graph, alarmType).map((alarm) => [alarm.inputs.name, watched(alarm)]);
    expect(Object.fromEntries(alarms)).toEqual({
      "code-rewards-ci-fault-ratio": [
        "CodeRewards Samples service=code-rewards-ci",
        "CodeRewards Faults service=code-rewards-ci",
      ],
      "code-rewards-ci-orphans-killed": ["CodeRewards OrphansKilled service=code-rewards-ci"],
      "code-rewards-ci-endpoint-throttles": [`AWS/Lambda Throttles ${endpointFunction}`],
      "code-rewards-ci-endpoint-errors": [`AWS/Lambda Errors ${endpointFunction}`],
      "code-rewards-ci-endpoint-refusals": [
        `AWS/Lambda Url5xxCount ${endpointFunction}`,
        "CodeRewards BatchesRefused service=code-rewards-ci",
      ],
      "code-rewards-ci-table-throttles": [
        `AWS/DynamoDB ReadThrottleEvents ${tableName}`,
        `AWS/DynamoDB WriteThrottleEvents ${tableName}`,
      ],
      "code-rewards-ci-sweep-failures": ["CodeRewards SweepFailures service=code-rewards-ci"],
      "code-rewards-ci-sweep-errors": [`AWS/Lambda Errors ${cleanupFunction}`],
      "code-rewards-ci-sweep-missing": [`AWS/Lambda Invocations ${cleanupFunction}`],
      "code-rewards-ci-sweep-undelivered": [
        "AWS/SQS ApproximateNumberOfMessagesVisible QueueName=code-rewards-ci-cleanup-failures",
      ],
    });
  }),
  rule("plain", "the functions count under the names that the alarms look at", (graph) => {
    for (const name of ["RewardsFunction", "CleanupHandlerFunction"]) {
      expect(environmentOf(graph, name)).toMatchObject({
        POWERTOOLS_SERVICE_NAME: "code-rewards-ci",
        POWERTOOLS_METRICS_NAMESPACE: "CodeRewards",
      });
    }
  }),
  rule("plain", "few samples are no ratio, and faults that nobody counted are none", (graph) => {
    const { metricQueries, threshold } = theResource(graph, alarmType, "FaultRatioAlarm").inputs;
    expect(threshold).toBe(0.05);
    expect(metricQueries.at(-1)).toMatchObject({
      expression: "IF(samples >= 20, FILL(faults, 0) / samples, 0)",
      returnData: true,
    });
  }),
  rule("plain", "silence is bad of the sweep, and good of all others", (graph) => {
    for (const { name, inputs } of resourcesOf(graph, alarmType)) {
      const isSweep = name === "SweepMissingAlarm";
      expect(inputs.treatMissingData).toBe(isSweep ? "breaching" : "notBreaching");
      const operator = isSweep ? "LessThanThreshold" : "GreaterThanOrEqualToThreshold";
      expect(inputs.comparisonOperator).toBe(operator);
      expect(inputs.threshold).toBeGreaterThan(0);
    }
  }),
  rule("full", "every alarm writes to who wants to be told, from its own threshold", (graph) => {
    const topic = "arn:aws:sns:us-east-1:123456789012:code-rewards-ci-alarms";
    expect(theResource(graph, "aws:sns/topicSubscription:TopicSubscription").inputs).toEqual({
      topic,
      protocol: "email",
      endpoint: everySetting.alarms.email,
    });
    const alarms = resourcesOf(graph, alarmType);
    expect(alarms.length).toBeGreaterThan(8);
    for (const { inputs } of alarms)
      expect(inputs).toMatchObject({ alarmActions: [topic], okActions: [topic] });
    expect(theResource(graph, alarmType, "FaultRatioAlarm").inputs.threshold).toBe(0.2);
    expect(theResource(graph, alarmType, "OrphansKilledAlarm").inputs.threshold).toBe(9);
  }),
  rule("plain", "each alarm is explained where people look for it", (graph) => {
    const guide = readFileSync(join(projectRoot, "docs/operate.md"), "utf8");
    for (const { inputs } of resourcesOf(graph, alarmType)) {
      expect(guide).toContain(`\`${inputs.name.replace("code-rewards-ci-", "")}\``);
    }
  }),
];

const keepingRules: readonly Rule[] = [
  rule("plain", "a stage that is no production goes whole when it is removed", (graph) => {
    expect(graph.app).toMatchObject({ removal: "remove", protect: false });
    expect(graph.resources.filter(({ retainOnDelete }) => retainOnDelete)).toEqual([]);
    expect(theResource(graph, "aws:dynamodb/table:Table").inputs.deletionProtectionEnabled).toBe(false);
  }),
  rule("production", "production can't be removed by mistake, and keeps its table", (graph) => {
    expect(graph.app).toMatchObject({ removal: "retain", protect: true });
    const made = theResource(graph, "aws:dynamodb/table:Table");
    expect(made.retainOnDelete).toBe(true);
    expect(made.inputs.deletionProtectionEnabled).toBe(true);
  }),
  rule("plain", "no machine, network or bucket is made unless the trainer is wanted", (graph) => {
    const kinds = graph.resources.map(({ type }) => type);
    expect(kinds.filter((type) => /^aws:(ec2|s3\/bucket:|ssm)/.test(type))).toEqual([]);
  }),
];

export const rules: readonly Rule[] = [
  ...trainerRules,
  ...endpointRules,
  ...cleanupRules,
  ...accessRules,
  ...secretRules,
  ...settingRules,
  ...alarmRules,
  ...keepingRules,
];
