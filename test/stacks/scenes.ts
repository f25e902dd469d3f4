/** Stages with different settings, each made once for the rules and mutants that look at it. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StageInput } from "../../stacks/config.ts";
import { type Graph, makeGraph } from "./graph.ts";
import { projectRoot } from "./platform.ts";

interface Scene {
  readonly stage: string;
  /** In the place of what `stacks/settings.ts` says. */
  readonly settings?: StageInput;
}

export const everySetting = {
  e2b: {
    plan: "pro",
    slots: 150,
    createIntervalMs: 300,
    lifeMs: 7_200_000,
    template: "own-template",
    workerVcpus: 4,
    workerMemoryMib: 2_048,
    usdPerVcpuHour: 0.04,
    usdPerGibHour: 0.01,
    domain: "sandboxes.example",
    apiUrl: "https://api.sandboxes.example",
    sandboxUrl: "https://in.sandboxes.example",
  },
  endpoint: { reservedConcurrency: 40, memoryMib: 3_008 },
  logs: { retentionDays: 7, level: "DEBUG" },
  alarms: { email: "ops@example.com", faultRatio: 0.2, faultRatioMinSamples: 100, orphansKilled: 9 },
} as const satisfies StageInput;

export const scenes = {
  plain: { stage: "ci" },
  production: { stage: "production" },
  full: { stage: "ci", settings: everySetting },
  trainer: { stage: "ci", settings: { trainer: { enabled: true } } },
  steady: {
    stage: "ci",
    settings: {
      trainer: {
        enabled: true,
        spot: false,
        instanceType: "g5.12xlarge",
        diskGib: 500,
        maxHours: 1.5,
        idleMinutes: 7,
      },
    },
  },
  kept: { stage: "production", settings: { trainer: { enabled: true } } },
  signed: { stage: "ci", settings: { endpoint: { auth: "aws_iam" } } },
} as const satisfies Record<string, Scene>;

export type SceneName = keyof typeof scenes;

/** One replacement in one file of the stacks. */
export interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** The scene's resources; with a change, of a copy of the project that differs in it. */
export async function makeScene(name: SceneName, change?: Change): Promise<Graph> {
  const { stage, settings }: Scene = scenes[name];
  const folder = copyStacks();
  try {
    if (settings !== undefined) writeSettings(folder, settings);
    if (change !== undefined) applyChange(folder, change);
    return await makeGraph({ stage, folder });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The config and the stacks; what they name by path is the project's own. */
function copyStacks(): string {
  const folder = mkdtempSync(join(tmpdir(), "code-rewards-stacks-"));
  for (const name of ["sst.config.ts", "stacks", "package.json"]) {
    cpSync(join(projectRoot, name), join(folder, name), { recursive: true });
  }
  for (const name of ["functions", "trainer"]) symlinkSync(join(projectRoot, name), join(folder, name));
  return folder;
}

function writeSettings(folder: string, settings: StageInput): void {
  const path = join(folder, "stacks/settings.ts");
  const text = `export const settings = ${JSON.stringify({ defaults: settings, stages: {} })};`;
  writeFileSync(path, text);
}

/** Throws when the text to be replaced is not there exactly once: the change would test nothing. */
function applyChange(folder: string, { file, from, to }: Change): void {
  const path = join(folder, file);
  const pieces = readFileSync(path, "utf8").split(from);
  if (pieces.length !== 2) throw new Error(`${file} has '${from}' ${pieces.length - 1} times`);
  writeFileSync(path, pieces.join(to));
}
