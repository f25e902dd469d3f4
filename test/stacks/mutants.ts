/** Changes for the worse, each of which some rule must notice. The text is replaced where it stands, exactly once. */
import type { Change, SceneName } from "./scenes.ts";

export interface Mutant extends Change {
  readonly name: string;
  readonly scene: SceneName;
}

function mutant(name: string, file: string, from: string, to: string, scene: SceneName = "plain"): Mutant {
  return { name, file, from, to, scene };
}

export const mutants: readonly Mutant[] = [
  mutant(
    "the table is linked, with every right",
    "stacks/functions.ts",
    "link: [e2bApiKey]",
    "link: [e2bApiKey, table]",
  ),
  mutant("every action on the table", "stacks/table.ts", '"dynamodb:GetItem",', '"dynamodb:*",'),
  mutant(
    "an action too many",
    "stacks/table.ts",
    '"dynamodb:Query",',
    '"dynamodb:Query", "dynamodb:DeleteItem",',
  ),
  mutant("an action too few", "stacks/table.ts", '"dynamodb:Query", ', ""),
  mutant("every table of the account", "stacks/table.ts", "resources: [table.arn]", 'resources: ["*"]'),
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a text of the stacks
  mutant("every log of the account", "stacks/functions.ts", "[$interpolate`${logGroup.arn}:*`]", '["*"]'),
  mutant("the platform's own policy", "stacks/functions.ts", "        role.managedPolicyArns = [];\n", ""),
  mutant(
    "roles that the whole account may assume",
    "stacks/functions.ts",
    '        role.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: "lambda.amazonaws.com" });\n',
    "",
  ),
  mutant(
    "the E2B key in the environment",
    "stacks/functions.ts",
    "CODE_REWARDS_TABLE: table.name,",
    "CODE_REWARDS_TABLE: table.name, E2B_API_KEY: e2bApiKey.value,",
  ),
  mutant(
    "the keys in an output",
    "sst.config.ts",
    "table: table.name",
    "table: table.name, keys: process.env.SST_SECRET_RewardApiKeys",
  ),
  mutant(
    "the sweep knows the callers' keys",
    "stacks/cleanup.ts",
    "    ...parts,\n",
    "    ...parts,\n    link: [...parts.link, rewardApiKeys!],\n",
  ),
  mutant(
    "no link to the callers' keys",
    "stacks/endpoint.ts",
    "[...parts.link, rewardApiKeys]",
    "parts.link",
  ),
  mutant("answers that don't stream", "stacks/endpoint.ts", "streaming: true,", "streaming: false,"),
  mutant("a minute for a batch", "stacks/endpoint.ts", '"15 minutes"', '"1 minute"'),
  mutant("any web page may call", "stacks/endpoint.ts", "cors: false", "cors: true"),
  mutant("the other processor", "stacks/functions.ts", '"arm64"', '"x86_64"'),
  mutant("a Node that is going away", "stacks/functions.ts", '"nodejs22.x"', '"nodejs20.x"'),
  mutant(
    "no supervisor in the bundle",
    "stacks/functions.ts",
    '    copyFiles: [{ from: "functions/supervisor", to: supervisorFolder }],\n',
    "",
  ),
  mutant(
    "a handler that isn't there",
    "stacks/endpoint.ts",
    "functions/reward.handler",
    "functions/rewards.handler",
  ),
  mutant(
    "a URL without signatures",
    "stacks/endpoint.ts",
    'auth === "aws_iam" ? "iam" : "none"',
    '"none"',
    "signed",
  ),
  mutant(
    "keys where callers sign",
    "stacks/secrets.ts",
    '"bearer" ? new',
    '"bearer" || true ? new',
    "signed",
  ),
  mutant(
    "reserved concurrency that is lost",
    "stacks/endpoint.ts",
    "concurrency: { reserved:",
    "concurrency: { provisioned: 0, reserved_:",
    "full",
  ),
  mutant(
    "a setting that doesn't arrive",
    "stacks/functions.ts",
    "CODE_REWARDS_SLOTS: e2b.slots,",
    "",
    "full",
  ),
  mutant(
    "two settings that are swapped",
    "stacks/functions.ts",
    "CODE_REWARDS_LIFE_MS: e2b.lifeMs,",
    "CODE_REWARDS_LIFE_MS: e2b.createIntervalMs,",
    "full",
  ),
  mutant("a sweep every hour", "stacks/cleanup.ts", "rate(1 minute)", "rate(1 hour)"),
  mutant("passes that are lost", "stacks/cleanup.ts", "  dlq: failedPasses.arn,\n", ""),
  mutant("passes that are not tried again", "stacks/cleanup.ts", "  retries: 2,", "  retries: 0,"),
  mutant(
    "failed passes that are forgotten",
    "stacks/cleanup.ts",
    "        invoke.destinationConfig = { onFailure: { destination: failedPasses.arn } };\n",
    "",
  ),
  mutant(
    "a bucket unasked",
    "stacks/table.ts",
    "export const table =",
    'new sst.aws.Bucket("More");\nexport const table =',
  ),
  mutant(
    "an import that SST refuses",
    "sst.config.ts",
    "export default",
    'import "./stacks/table.ts";\nexport default',
  ),
  mutant("another time to live", "stacks/table.ts", '"expiresAtS"', '"expiresAt"'),
  mutant("logs for ever", "stacks/functions.ts", "    retentionInDays: config.logs.retentionDays,\n", ""),
  mutant("logs as long as by default", "stacks/functions.ts", "config.logs.retentionDays", "30", "full"),
  mutant("an alarm that nobody explains", "stacks/alarms.ts", '"orphans-killed"', '"orphans"'),
  mutant("an alarm on nothing", "stacks/alarms.ts", 'counted("Faults")', 'counted("Fault")'),
  mutant(
    "an alarm on another dimension",
    "stacks/alarms.ts",
    "{ service: serviceName }",
    "{ stage: serviceName }",
  ),
  mutant(
    "a sweep whose silence is golden",
    "stacks/alarms.ts",
    'treatMissingData: "breaching"',
    'treatMissingData: "notBreaching"',
  ),
  mutant("alarms that tell nobody", "stacks/alarms.ts", "alarmActions: [topic.arn], ", "", "full"),
  mutant("an unprotected production", "sst.config.ts", "protect: keep", "protect: false", "production"),
  mutant(
    "a production that keeps nothing",
    "sst.config.ts",
    'keep ? "retain" : "remove"',
    '"remove"',
    "production",
  ),
  mutant(
    "a table that may be deleted",
    "stacks/table.ts",
    "deletionProtection: isProduction($app.stage)",
    "deletionProtection: false",
    "production",
  ),
  mutant("a test stage that stays", "sst.config.ts", 'keep ? "retain" : "remove"', '"retain"'),
];
