/** A training machine's life, from its first line to its last, whatever becomes of its job. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, type TestContext } from "vitest";
import { type AwsStandIn, startAws } from "./aws/stand-in.ts";
import { ensureTools, toolsFolder } from "./aws/tools.ts";
import { machineKey, makeTrainingSite, type TrainingSite } from "./aws/training-site.ts";
import { bootMachine, type Machine, type MachineOptions } from "./boot/machine.ts";
import { ensurePlatform, projectRoot } from "./platform.ts";
import { theResource } from "./reading.ts";
import { makeScene } from "./scenes.ts";
import { bootScript } from "./trainer-rules.ts";
import { until } from "./until.ts";

const jobSources = fileURLToPath(new URL("boot/job", import.meta.url));
const machineLimitMs = 150_000;

let aws: AwsStandIn;
let site: TrainingSite;
let script: string;

beforeAll(async () => {
  ensurePlatform();
  ensureTools();
  script = bootScript(await makeScene("trainer"));
  aws = await startAws();
  site = await makeTrainingSite(aws, "code-rewards-ci-training", jobSources);
}, 400_000);

afterAll(() => aws?.close());

async function boot(
  test: Pick<TestContext, "onTestFinished">,
  name: string,
  options: Partial<MachineOptions> = {},
): Promise<Machine> {
  const machine = await bootMachine({ script, aws, site, name, ...options });
  test.onTestFinished(() => machine.remove());
  return machine;
}

async function order(job: string, ...args: string[]): Promise<void> {
  await site.write(`jobs/${job}/job.json`, JSON.stringify({ arguments: args }));
}

async function statusOf(job: string) {
  const text = await site.read(`jobs/${job}/status.json`);
  return text === undefined ? undefined : JSON.parse(text);
}

/** Whatever happened, the machine's end was arranged before anything else, and asked for last. */
function expectItsEnd(machine: Machine, maxS = 600): void {
  expect(machine.shutdowns()).toEqual([`-h +${Math.floor(maxS / 60) + 20}`, "-h now"]);
}

it("passes the linter", () => {
  execFileSync(join(toolsFolder, "shellcheck"), ["--external-sources", "stacks/trainer/boot.sh"], {
    cwd: projectRoot,
  });
});

it("is made of what can be installed as it is shipped", async () => {
  const { source } = theResource(
    await makeScene("trainer"),
    "aws:s3/bucketObjectv2:BucketObjectv2",
    "TrainerCode",
  ).inputs;
  const folder = mkdtempSync(join(tmpdir(), "code-rewards-shipped-"));
  try {
    for (const [name, path] of Object.entries<string>(source))
      cpSync(join(projectRoot, path), join(folder, name));
    // Without the extra `train`, whose gigabytes are the trainer's own tests' affair.
    execFileSync(join(toolsFolder, "uv"), ["sync", "--quiet", "--locked", "--no-dev", "--directory", folder]);
    const help = execFileSync(join(folder, ".venv/bin/python"), ["-m", "code_rewards.train", "--help"], {
      cwd: folder,
    });
    expect(help.toString()).toContain("--max-steps");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);

it.concurrent(
  "does its job, keeps what it made, and ends",
  async (test) => {
    const notes = ["two words", `quotes ' and "`, "$HOME `id` \\", "ünïcödé", "", "line\nbreak"];
    const args = ["--model", "learn", "--max-steps", "4", "--tasks", "own_tasks.py"];
    await order("good", ...args, ...notes.map((note) => `--note=${note}`));
    await site.write("jobs/good/files/own_tasks.py", "TRAIN_TASKS = []\n");
    const machine = await boot(test, "i-good", { job: "good" });
    await machine.over;
    expect(await statusOf("good")).toMatchObject({ state: "done", exit_code: 0, machine: "i-good" });
    const found = JSON.parse((await site.read("jobs/good/output/found.json")) ?? "{}");
    expect(found).toMatchObject({
      arguments: [
        "--output-dir",
        join(machine.folder, "home/output"),
        ...args,
        ...notes.map((note) => `--note=${note}`),
      ],
      url: "https://abc.lambda-url.us-east-1.on.aws/",
      key_bytes: machineKey.length,
      tasks: "TRAIN_TASKS = []\n",
      resumed_from: null,
    });
    expect(await site.list("jobs/good/output/")).toEqual([
      "checkpoint-3/trainer_state.json",
      "checkpoint-3/uploaded",
      "checkpoint-3/weights",
      "checkpoint/model",
      "found.json",
      "steps.txt",
    ]);
    const log = (await site.read("jobs/good/log/i-good.txt")) ?? "";
    expect(log).toMatch(/job good on i-good\n[\s\S]*step 4\/4\n[\s\S]*the job is over: done, exit code 0\n$/);
    for (const text of [log, machine.log(), JSON.stringify(await statusOf("good"))])
      expect(text).not.toContain(machineKey);
    expectItsEnd(machine);
  },
  machineLimitMs,
);

it.concurrent.for([
  ["fail", "failed", 3, {}],
  ["sleep", "idle", 143, { idleS: 5, graceS: 1 }],
  ["hang", "too_long", 137, { maxS: 12, graceS: 1, patienceS: 2 }],
] as const)(
  "a job that does %s: %s",
  { timeout: machineLimitMs },
  async ([model, state, exitCode, options], test) => {
    await order(model, "--model", model);
    const machine = await boot(test, `i-${model}`, { job: model, ...options });
    await machine.over;
    expect(await statusOf(model)).toMatchObject({ state, exit_code: exitCode });
    expect(await site.read(`jobs/${model}/log/i-${model}.txt`)).toContain(`the job is over: ${state}`);
    expectItsEnd(machine, "maxS" in options ? options.maxS : 600);
  },
);

it.concurrent(
  "a machine that is taken away saves first, and another one goes on",
  async (test) => {
    await order("long", "--model", "learn", "--max-steps", "12");
    const first = await boot(test, "i-first", { job: "long" });
    await until(() => first.log().includes("step 4/12"), 90_000);
    first.metadata.values.set("spot/instance-action", '{"action":"terminate","time":"2026-01-01T00:00:00Z"}');
    await first.over;
    expect(await statusOf("long")).toMatchObject({ state: "interrupted", machine: "i-first" });
    expectItsEnd(first);
    const kept = (await site.list("jobs/long/output/")).filter((key) => key.endsWith("/uploaded"));
    const last = Math.max(...kept.map((key) => Number(/checkpoint-(\d+)/.exec(key)?.[1])));
    expect(last).toBeGreaterThan(4);
    // As a machine leaves it that goes in the middle of an upload.
    await site.write("jobs/long/output/checkpoint-99/trainer_state.json", "{}");

    const second = await boot(test, "i-second", { job: "long" });
    await second.over;
    expect(await statusOf("long")).toMatchObject({ state: "done", machine: "i-second" });
    expect(JSON.parse((await site.read("jobs/long/output/found.json")) ?? "{}").resumed_from).toBe(last);
    const steps = (await site.read("jobs/long/output/steps.txt"))?.trim().split("\n").map(Number);
    expect(steps).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    const checkpoints = new Set(
      (await site.list("jobs/long/output/")).map((key) => /^checkpoint-\d+/.exec(key)?.[0]),
    );
    expect([...checkpoints].filter(Boolean).toSorted()).toEqual([
      "checkpoint-12",
      "checkpoint-9",
      "checkpoint-99",
    ]);
    expectItsEnd(second);
  },
  2 * machineLimitMs,
);

it.concurrent(
  "a machine that is shut down from outside saves, too",
  async (test) => {
    await order("ended", "--model", "learn", "--max-steps", "100");
    const machine = await boot(test, "i-ended", { job: "ended" });
    await until(() => machine.log().includes("step 2/100"), 90_000);
    machine.signal("SIGTERM");
    await machine.over;
    expect(await statusOf("ended")).toMatchObject({ state: "interrupted" });
    expect((await site.list("jobs/ended/output/")).some((key) => key.endsWith("/uploaded"))).toBe(true);
    expectItsEnd(machine);
  },
  machineLimitMs,
);

it.concurrent(
  "a machine without a job says so, and ends",
  async (test) => {
    const machine = await boot(test, "i-idle");
    await machine.over;
    expect(machine.log()).toContain(
      "this machine has no tag code-rewards-job: start it by npm run train:remote",
    );
    expectItsEnd(machine);
  },
  machineLimitMs,
);

it.concurrent(
  "a machine that can't have its job says what failed, and ends",
  async (test) => {
    const machine = await boot(test, "i-lost", { job: "nowhere" });
    await machine.over;
    expect(await statusOf("nowhere")).toMatchObject({ state: "failed", exit_code: null });
    expect(await site.read("jobs/nowhere/log/i-lost.txt")).toMatch(
      /failed for good: put s3:.*jobs\/nowhere\/job.json/,
    );
    expectItsEnd(machine);
    expect(existsSync(join(machine.folder, "home/trainer"))).toBe(false);
  },
  machineLimitMs,
);
