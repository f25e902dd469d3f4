/** What a deployment is told by its environment, and by the secrets that are linked to it. */
import { z } from "zod";
import { readLinkedSecrets } from "./adapters/linked-secrets.ts";
import { defaultShape, listRates, workerReserveMib } from "./pool/cost.ts";
import { plans } from "./pool/settings.ts";
import { Fault } from "./rewards/faults.ts";
import type { ServiceSettings } from "./wiring.ts";

const text = z.string().trim().min(1);
const address = z.url({ protocol: /^https?$/ });
const hostname = text.regex(/^[a-z0-9.-]+(:\d+)?$/i, "must be a host's name, such as e2b.app");
/** What the supervisor keeps, and the least that a test case may be given. */
const leastMemoryMib = workerReserveMib + 32;
const count = z.coerce.number().int().min(1);
const usd = z.coerce.number().nonnegative();

/** A variable that is set to nothing counts as not set. */
const variables = z.object({
  /** Who may call: who sends a key, or whom the platform in front has identified by a signature. */
  CODE_REWARDS_AUTH: z.enum(["bearer", "aws_iam"]).default("bearer"),
  /** Several, separated by commas, while one is replaced. */
  CODE_REWARDS_API_KEYS: text
    .transform(splitKeys)
    .refine((keys) => keys.length > 0, "has no key")
    .refine((keys) => keys.every((key) => /^\S+$/.test(key)), "must be keys without blanks in them")
    .optional(),
  CODE_REWARDS_TABLE: text,
  E2B_API_KEY: text,
  E2B_DOMAIN: hostname.optional(),
  E2B_API_URL: address.optional(),
  E2B_SANDBOX_URL: address.optional(),
  E2B_TEMPLATE: text.optional(),
  DYNAMODB_ENDPOINT: address.optional(),
  /** What the E2B plan allows, and what add-ons change of it. */
  CODE_REWARDS_PLAN: z.enum(["hobby", "pro"]).default("hobby"),
  CODE_REWARDS_SLOTS: count.max(1_000).optional(),
  CODE_REWARDS_CREATE_INTERVAL_MS: count.optional(),
  CODE_REWARDS_LIFE_MS: count.optional(),
  /** What the template's sandboxes have, and what they cost. */
  CODE_REWARDS_WORKER_VCPUS: z.coerce.number().positive().default(defaultShape.vcpus),
  CODE_REWARDS_WORKER_MEMORY_MIB: count.min(leastMemoryMib).default(defaultShape.memoryMib),
  CODE_REWARDS_USD_PER_VCPU_HOUR: usd.default(listRates.usdPerVcpuHour),
  CODE_REWARDS_USD_PER_GIB_HOUR: usd.default(listRates.usdPerGibHour),
  CODE_REWARDS_SUPERVISOR_FOLDER: text.optional(),
});

const coherent = variables.superRefine(
  ({ CODE_REWARDS_AUTH: auth, CODE_REWARDS_API_KEYS: keys }, context) => {
    if (auth === "aws_iam" || keys !== undefined) return;
    context.addIssue({ code: "custom", path: ["CODE_REWARDS_API_KEYS"], message: "is not set" });
  },
);

/**
 * Reads the whole configuration: secrets from where the deployment keeps them, the rest, and secrets of other hosts, from
 * the environment. Throws a `misconfigured` fault that names every problem at once, and no value: some are secrets.
 */
export function loadConfig(environment: Readonly<Record<string, string | undefined>>): ServiceSettings {
  const set = Object.entries(environment).filter(([, value]) => value !== undefined && value.trim() !== "");
  const read = coherent.safeParse({ ...readLinkedSecrets(environment), ...Object.fromEntries(set) });
  if (!read.success) {
    const problems = read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
    throw new Fault("misconfigured", `environment: ${problems.join("; ")}`);
  }
  return toSettings(read.data);
}

function toSettings(env: z.infer<typeof variables>): ServiceSettings {
  const plan = plans[env.CODE_REWARDS_PLAN];
  return {
    apiKeys: env.CODE_REWARDS_API_KEYS ?? [],
    ...(env.CODE_REWARDS_AUTH === "aws_iam" && { signedCallers: true }),
    e2b: {
      apiKey: env.E2B_API_KEY,
      ...(env.E2B_DOMAIN !== undefined && { domain: env.E2B_DOMAIN }),
      ...(env.E2B_API_URL !== undefined && { apiUrl: env.E2B_API_URL }),
      ...(env.E2B_SANDBOX_URL !== undefined && { sandboxUrl: env.E2B_SANDBOX_URL }),
      ...(env.E2B_TEMPLATE !== undefined && { template: env.E2B_TEMPLATE }),
    },
    dynamoDb: env.DYNAMODB_ENDPOINT === undefined ? {} : { endpoint: env.DYNAMODB_ENDPOINT },
    tableName: env.CODE_REWARDS_TABLE,
    plan: {
      slots: env.CODE_REWARDS_SLOTS ?? plan.slots,
      createIntervalMs: env.CODE_REWARDS_CREATE_INTERVAL_MS ?? plan.createIntervalMs,
      lifeMs: env.CODE_REWARDS_LIFE_MS ?? plan.lifeMs,
    },
    worker: { vcpus: env.CODE_REWARDS_WORKER_VCPUS, memoryMib: env.CODE_REWARDS_WORKER_MEMORY_MIB },
    rates: {
      usdPerVcpuHour: env.CODE_REWARDS_USD_PER_VCPU_HOUR,
      usdPerGibHour: env.CODE_REWARDS_USD_PER_GIB_HOUR,
    },
    ...(env.CODE_REWARDS_SUPERVISOR_FOLDER !== undefined && {
      supervisorFolder: env.CODE_REWARDS_SUPERVISOR_FOLDER,
    }),
  };
}

function splitKeys(keys: string): string[] {
  return keys
    .split(",")
    .map((key) => key.trim())
    .filter((key) => key !== "");
}
