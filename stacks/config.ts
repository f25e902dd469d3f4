/**
 * What a stage is deployed with: one typed place, validated whole before anything is created.
 *
 * `settings.ts` says what differs from the defaults. What is not set here at all is left to the functions, which know
 * the plans' limits. Secrets are not among it: `sst secret set` sets them.
 */
import { z } from "zod";
import { type StageSettings, settings } from "./settings.ts";

const count = z.int().min(1);

const e2b = z.strictObject({
  /** Whose limits the pool keeps to: hobby 20 sandboxes, 1 new one a second, 1 h of life; pro 100, 5, 24 h. */
  plan: z.enum(["hobby", "pro"]).default("hobby"),
  /** Sandboxes at once, where an add-on allows more or you want fewer. */
  slots: count.max(1_000).optional(),
  createIntervalMs: count.optional(),
  lifeMs: count.optional(),
  /** Template of the sandboxes. Default: E2B's own. The three below tell its size and its price. */
  template: z.string().min(1).optional(),
  workerVcpus: z.number().positive().optional(),
  workerMemoryMib: count.optional(),
  usdPerVcpuHour: z.number().nonnegative().optional(),
  usdPerGibHour: z.number().nonnegative().optional(),
  /** An E2B-compatible cloud of your own. */
  domain: z.string().min(1).optional(),
  apiUrl: z.url().optional(),
  sandboxUrl: z.url().optional(),
});

const endpoint = z.strictObject({
  /** `bearer`: keys, of the secret RewardApiKeys. `aws_iam`: callers sign their requests, and there are no keys. */
  auth: z.enum(["bearer", "aws_iam"]).default("bearer"),
  /** Batches at once: each holds one container. Default: what the account allows. 0 closes the endpoint. */
  reservedConcurrency: z.int().min(0).optional(),
  /** CPU comes with it: 1,769 MiB is one vCPU. */
  memoryMib: z.int().min(512).max(10_240).default(1_769),
});

const retentions = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] as const;
const logs = z.strictObject({
  retentionDays: z.union(retentions.map((days) => z.literal(days))).default(30),
  level: z.enum(["DEBUG", "INFO", "WARN", "ERROR"]).default("INFO"),
});

const alarms = z.strictObject({
  /** Who is told. Without it alarms only change their colour in CloudWatch. */
  email: z.email().optional(),
  /** Share of samples that are answered null, in 5 minutes that have at least so many samples. */
  faultRatio: z.number().gt(0).lt(1).default(0.05),
  faultRatioMinSamples: count.default(20),
  /** Sandboxes that no slot knew, in 15 minutes. One is a crash that healed; many are a bug. */
  orphansKilled: count.default(5),
});

const gpuInstance = /^(g4dn|g5|g6|g6e|gr6|p4d|p4de|p5|p5e|p5en)\.(\d*xlarge|metal)$/;
const trainer = z.strictObject({
  /** A launch template: nothing runs, or costs, before `npm run train:remote`. */
  enabled: z.boolean().default(false),
  instanceType: z
    .string()
    .regex(gpuInstance, "is no NVIDIA type that we know, like g6.xlarge")
    .default("g6.xlarge"),
  spot: z.boolean().default(true),
  diskGib: z.int().min(100).max(16_384).default(200),
  /** The machine ends itself after so long, whatever its job does … */
  maxHours: z.number().gt(0).max(168).default(12),
  /** … and when its job has said nothing and used no GPU for so long. */
  idleMinutes: z.int().min(5).max(1_440).default(30),
});

const stage = z
  .strictObject({
    e2b: e2b.prefault({}),
    endpoint: endpoint.prefault({}),
    logs: logs.prefault({}),
    alarms: alarms.prefault({}),
    trainer: trainer.prefault({}),
  })
  .refine(({ endpoint, trainer }) => !trainer.enabled || endpoint.auth === "bearer", {
    path: ["trainer", "enabled"],
    message: "the trainer sends a bearer key, which endpoint.auth aws_iam has not",
  });

export type StageInput = z.input<typeof stage>;
export type StageConfig = z.output<typeof stage>;

/** The configuration of a stage. Throws an error that names every problem at once. */
export function readConfig(stageName: string, given: StageSettings = settings): StageConfig {
  const read = stage.safeParse(merge(given.defaults, given.stages[stageName] ?? {}));
  if (read.success) return read.data;
  const problems = read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
  throw new Error(`stacks/settings.ts, stage ${stageName}: ${problems.join("; ")}`);
}

/** A stage says, section by section, what differs. */
function merge(defaults: StageInput, own: StageInput): unknown {
  const sections = Object.keys({ ...defaults, ...own }) as (keyof StageInput)[];
  return Object.fromEntries(sections.map((name) => [name, { ...defaults[name], ...own[name] }]));
}

/** Production keeps its data, and can't be removed by mistake; every other stage vanishes whole. */
export function isProduction(stageName: string): boolean {
  return stageName === "production";
}
