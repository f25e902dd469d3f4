/** What both functions have in common. */
import { readConfig, type StageConfig } from "./config.ts";
import { e2bApiKey } from "./secrets.ts";
import { table, tablePermission } from "./table.ts";

/** The name under which metrics are counted and lines are logged. */
export const serviceName = `${$app.name}-${$app.stage}`;
export const metricsNamespace = "CodeRewards";

const supervisorFolder = "supervisor";

/** The shared arguments of a function, and its log group. */
export function functionParts({
  title,
  name,
  auth,
}: {
  /** For resources' names. */
  readonly title: string;
  /** For people. */
  readonly name: string;
  readonly auth: StageConfig["endpoint"]["auth"];
}) {
  const config = readConfig($app.stage);
  const logGroup = new aws.cloudwatch.LogGroup(`${title}Logs`, {
    name: `/${$app.name}/${$app.stage}/${name}`,
    retentionInDays: config.logs.retentionDays,
  });
  return {
    runtime: "nodejs22.x",
    architecture: "arm64",
    logging: { logGroup: logGroup.name },
    copyFiles: [{ from: "functions/supervisor", to: supervisorFolder }],
    environment: { ...functionEnvironment(config), CODE_REWARDS_AUTH: auth },
    link: [e2bApiKey],
    permissions: [
      tablePermission,
      // Streams have names that only the platform knows.
      {
        actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
        resources: [$interpolate`${logGroup.arn}:*`],
      },
    ],
    // Else the role could be assumed by the whole account, and would write to every log there is.
    transform: {
      role: (role: aws.iam.RoleArgs): undefined => {
        role.assumeRolePolicy = aws.iam.assumeRolePolicyForPrincipal({ Service: "lambda.amazonaws.com" });
        role.managedPolicyArns = [];
      },
    },
  } satisfies Partial<sst.aws.FunctionArgs>;
}

/** What functions/config.ts reads. Secrets are not here: they are linked, in a file that is encrypted. */
function functionEnvironment({ e2b, logs }: StageConfig) {
  const optional = {
    CODE_REWARDS_SLOTS: e2b.slots,
    CODE_REWARDS_CREATE_INTERVAL_MS: e2b.createIntervalMs,
    CODE_REWARDS_LIFE_MS: e2b.lifeMs,
    CODE_REWARDS_WORKER_VCPUS: e2b.workerVcpus,
    CODE_REWARDS_WORKER_MEMORY_MIB: e2b.workerMemoryMib,
    CODE_REWARDS_USD_PER_VCPU_HOUR: e2b.usdPerVcpuHour,
    CODE_REWARDS_USD_PER_GIB_HOUR: e2b.usdPerGibHour,
    E2B_TEMPLATE: e2b.template,
    E2B_DOMAIN: e2b.domain,
    E2B_API_URL: e2b.apiUrl,
    E2B_SANDBOX_URL: e2b.sandboxUrl,
  };
  const set = Object.entries(optional).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)] as const],
  );
  return {
    ...Object.fromEntries(set),
    CODE_REWARDS_TABLE: table.name,
    CODE_REWARDS_PLAN: e2b.plan,
    CODE_REWARDS_SUPERVISOR_FOLDER: supervisorFolder,
    POWERTOOLS_SERVICE_NAME: serviceName,
    POWERTOOLS_METRICS_NAMESPACE: metricsNamespace,
    POWERTOOLS_LOG_LEVEL: logs.level,
  };
}
