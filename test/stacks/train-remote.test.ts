/** `npm run train:remote`, against a stand-in for AWS: the test plays the machines, or boots one. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { DescribeInstancesCommand, EC2Client, TerminateInstancesCommand } from "@aws-sdk/client-ec2";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCommand } from "../../stacks/trainer/remote/command-line.ts";
import { describeCost } from "../../stacks/trainer/remote/cost.ts";
import { type AwsStandIn, startAws } from "./aws/stand-in.ts";
import { ensureTools } from "./aws/tools.ts";
import { localClient, makeTrainingSite, type TrainingSite } from "./aws/training-site.ts";
import { makeTemplate } from "./aws/training-template.ts";
import { bootMachine } from "./boot/machine.ts";
import { ensurePlatform, projectRoot } from "./platform.ts";
import { theResource } from "./reading.ts";
import { makeScene } from "./scenes.ts";
import { bootScript } from "./trainer-rules.ts";
import { until } from "./until.ts";

const limitMs = 150_000;
let aws: AwsStandIn;
let ec2: EC2Client;
let site: TrainingSite;
let script: string;
let folder: string;

beforeAll(async () => {
  ensurePlatform();
  ensureTools();
  folder = mkdtempSync(join(tmpdir(), "code-rewards-remote-"));
  const graph = await makeScene("trainer");
  script = bootScript(graph);
  aws = await startAws();
  ec2 = new EC2Client(localClient(aws));
  const sources = fileURLToPath(new URL("boot/job", import.meta.url));
  site = await makeTrainingSite(aws, "code-rewards-ci-training", sources);
  await makeTemplate(ec2, graph, site.bucket);
}, 400_000);

afterAll(async () => {
  await aws?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Outcome {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

interface Running {
  readonly outcome: Promise<Outcome>;
  readonly said: () => string;
  readonly signal: (name: NodeJS.Signals) => void;
}

function trainRemote(...words: string[]): Running {
  let said = "";
  let child: ReturnType<typeof execFile> | undefined;
  const outcome = new Promise<Outcome>((resolve) => {
    child = execFile(
      process.execPath,
      ["--import", "tsx", "stacks/trainer/remote/main.ts", ...words],
      { cwd: projectRoot, env: { PATH: process.env.PATH, ...aws.environment } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
    child.stdout?.on("data", (text) => {
      said += text;
    });
  });
  return { outcome, said: () => said, signal: (name) => void child?.kill(name) };
}

const job = (name: string, ...words: string[]) => trainRemote("--stage", "ci", "--name", name, ...words);

async function machinesOf(name: string) {
  const filters = [{ Name: "tag:code-rewards-job", Values: [name] }];
  const { Reservations: found = [] } = await ec2.send(new DescribeInstancesCommand({ Filters: filters }));
  return found.flatMap(({ Instances = [] }) => Instances);
}

/** Its machine, once there is one. */
async function machineOf(name: string): Promise<string> {
  await until(async () => (await machinesOf(name)).length === 1, 60_000);
  return (await machinesOf(name))[0]?.InstanceId ?? "";
}

async function say(name: string, machine: string, text: string): Promise<void> {
  await site.write(`jobs/${name}/log/${machine}.txt`, text);
}

async function endMachine(name: string, machine: string, state?: string, exitCode: number | null = 0) {
  const status = { state, exit_code: exitCode, machine, at: new Date().toISOString() };
  if (state !== undefined) await site.write(`jobs/${name}/status.json`, JSON.stringify(status));
  await ec2.send(new TerminateInstancesCommand({ InstanceIds: [machine] }));
}

describe.concurrent("a job", () => {
  it(
    "starts one machine of the stage's template, is followed, and ends the command with it",
    async () => {
      const tasks = join(folder, "own_tasks.py");
      writeFileSync(tasks, "TRAIN_TASKS = []\n");
      const running = job(
        "first",
        "--model",
        "org/model",
        "--tasks",
        tasks,
        "--workers",
        "4",
        "--max-steps",
        "9",
      );
      const machine = await machineOf("first");
      await say("first", machine, "step 1/9\n");
      await until(() => running.said() === "step 1/9\n", 30_000);
      await say("first", machine, "step 1/9\nstep 2/9: ünïcödé\n");
      await endMachine("first", machine, "done");
      const { code, stdout, stderr } = await running.outcome;
      expect({ code, stdout }).toEqual({ code: 0, stdout: "step 1/9\nstep 2/9: ünïcödé\n" });
      expect(stderr).toMatch(
        /a g6\.xlarge \(spot\) \$[\d.]+ an hour, its disk of 200 GiB \$0\.022, 4 sandboxes \$0\.44/,
      );
      expect(stderr).toMatch(/about \$[\d.]+ an hour, and \$[\d.]+ at most: the machine ends after 12 h/);
      expect(stderr).toContain("the job first is done");
      const [instance] = await machinesOf("first");
      expect(instance).toMatchObject({
        InstanceType: "g6.xlarge",
        Tags: expect.arrayContaining([
          { Key: "code-rewards-job", Value: "first" },
          { Key: "code-rewards-stage", Value: "ci" },
        ]),
      });
      expect(JSON.parse((await site.read("jobs/first/job.json")) ?? "")).toMatchObject({
        arguments: [
          "--model",
          "org/model",
          "--tasks",
          "own_tasks.py",
          "--workers",
          "4",
          "--max-steps",
          "9",
          "--save-steps",
          "20",
        ],
      });
      expect(await site.read("jobs/first/files/own_tasks.py")).toBe("TRAIN_TASKS = []\n");
      const again = await job("first", "--model", "org/model").outcome;
      expect(again).toMatchObject({ code: 1, stderr: "the job first is done: choose another name\n" });
      expect(await machinesOf("first")).toHaveLength(1);
    },
    limitMs,
  );

  it(
    "of the same name is refused while the first one runs, or is being started",
    async () => {
      const both = [job("twice", "--model", "a", "--detach"), job("twice", "--model", "b", "--detach")];
      const outcomes = await Promise.all(both.map(({ outcome }) => outcome));
      expect(outcomes.map(({ code }) => code).toSorted()).toEqual([0, 1]);
      const refused = outcomes.find(({ code }) => code === 1);
      expect(refused?.stderr).toMatch(/the job twice is (being started by somebody else|running on i-)/);
      const third = await job("twice", "--model", "c").outcome;
      expect(third).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("the job twice is running on i-"),
      });
      expect(await machinesOf("twice")).toHaveLength(1);
    },
    limitMs,
  );

  it(
    "whose machine is taken away says so, and the same command goes on",
    async () => {
      const first = job("spot", "--model", "m");
      const machine = await machineOf("spot");
      await endMachine("spot", machine, "interrupted", 5);
      const { code, stderr } = await first.outcome;
      expect(code).toBe(75);
      expect(stderr).toContain("The same command goes on from its checkpoint");
      const second = await job("spot", "--model", "m", "--detach").outcome;
      expect(second).toMatchObject({
        code: 0,
        stderr: expect.stringContaining("begun before (interrupted): going on"),
      });
      expect(await machinesOf("spot")).toHaveLength(2);
    },
    limitMs,
  );

  it.each([
    ["failed", 3, 3, "failed; its log says why (exit code 3)"],
    ["idle", 143, 1, "did nothing for so long"],
    ["too_long", 143, 75, "had the longest time"],
    [undefined, null, 75, "its machine is gone without a word"],
  ] as const)(
    "that ended as %s with %s ends the command with %s",
    async (state, exitCode, expected, words) => {
      const name = `ends-${state ?? "silently"}`;
      const running = job(name, "--model", "m");
      await endMachine(name, await machineOf(name), state, exitCode);
      const { code, stderr } = await running.outcome;
      expect(code).toBe(expected);
      expect(stderr).toContain(words);
    },
    limitMs,
  );

  it(
    "goes on when the command is interrupted, is followed again, and can be ended",
    async () => {
      const running = job("left", "--model", "m");
      const machine = await machineOf("left");
      await say("left", machine, "step 1\n");
      await until(() => running.said() === "step 1\n", 30_000);
      running.signal("SIGINT");
      expect(await running.outcome).toMatchObject({
        code: 130,
        stderr: expect.stringContaining(`${machine} goes on`),
      });
      expect((await machinesOf("left"))[0]?.State?.Name).not.toBe("terminated");
      const again = job("left", "--follow");
      await until(() => again.said() === "step 1\n", 30_000);
      expect(await job("left", "--end").outcome).toMatchObject({ code: 0, stderr: `ended ${machine}\n` });
      expect(await again.outcome).toMatchObject({
        code: 75,
        stderr: expect.stringContaining("gone without a word"),
      });
      expect((await machinesOf("left"))[0]?.State?.Name).toBe("terminated");
    },
    limitMs,
  );

  it(
    "on a machine that boots in earnest: what it says is what the command prints",
    async () => {
      const running = job("real", "--model", "learn", "--max-steps", "5");
      const id = await machineOf("real");
      const machine = await bootMachine({ script, aws, site, name: id, job: "real" });
      try {
        await machine.over;
        expect(machine.shutdowns().at(-1)).toBe("-h now");
        await ec2.send(new TerminateInstancesCommand({ InstanceIds: [id] }));
        const { code, stdout } = await running.outcome;
        expect(code).toBe(0);
        expect(stdout.trimEnd()).toBe(machine.log());
        expect(stdout).toContain("step 5/5");
      } finally {
        await machine.remove();
      }
    },
    limitMs,
  );
});

it("a job that AWS gives no machine for is refused in AWS's own words, and its name is free again", async () => {
  const graph = await makeScene("trainer");
  const { inputs } = theResource(graph, "aws:ec2/launchTemplate:LaunchTemplate", "Trainer");
  Object.assign(inputs, { name: "code-rewards-full-trainer", securityGroupIds: ["sg-that-is-not-there"] });
  await makeTemplate(ec2, graph, site.bucket);
  for (const _ of ["once", "again"]) {
    const { code, stderr } = await trainRemote("--stage", "full", "--name", "none", "--model", "m").outcome;
    expect(code).toBe(1);
    expect(stderr).toContain("AWS gives no machine: InvalidGroup.NotFound: ");
  }
});

it("a stage without a trainer is told how to have one", async () => {
  const { code, stderr } = await trainRemote("--stage", "dev", "--name", "a", "--model", "m").outcome;
  expect(code).toBe(1);
  expect(stderr).toContain("the stage dev has no trainer in this account and region: set trainer.enabled");
});

describe("the command line", () => {
  const read = (...words: string[]) => readCommand(["--stage", "ci", "--name", "a", ...words]);

  it("gives the trainer its own arguments, untouched", () => {
    expect(read("--model=m", "--learning-rate", "1e-5", "--record-samples", "--save-steps", "7")).toEqual({
      kind: "start",
      stage: "ci",
      name: "a",
      detach: false,
      trainArguments: ["--model=m", "--learning-rate", "1e-5", "--record-samples", "--save-steps", "7"],
      files: {},
    });
  });

  it.each<[string[], string]>([
    [["--model", "m", "--max-stepz", "3"], "the trainer has no --max-stepz"],
    [["--max-steps", "3"], "--model is needed"],
    [["--model", projectRoot], "put the model on the hub"],
    [["--model", "m", "--output-dir", "x"], "--output-dir can't be given"],
    [["--model", "m", "--endpoint=http://x"], "--endpoint can't be given"],
    [["--model", "m", "--resume-from-checkpoint"], "the same --name goes on by itself"],
    [["--model", "m", "--tasks", "nowhere.py"], "there is no such file"],
    [["--follow", "--model", "m"], "--follow takes nothing"],
    [["--follow", "--end"], "takes nothing but"],
  ])("refuses %j", (words, problem) => {
    expect(() => read(...words)).toThrow(problem);
  });

  it.each<[string[], string]>([
    [["--name", "a"], "--stage is needed"],
    [["--stage", "ci", "--model", "m"], "--name is needed"],
    [["--stage", "ci", "--name", "../a", "--model", "m"], "--name is needed"],
    [["--stage", "ci", "--name", "a".repeat(64), "--model", "m"], "--name is needed"],
  ])("refuses %j", (words, problem) => {
    expect(() => readCommand(words)).toThrow(problem);
  });
});

describe("the estimate", () => {
  const plan = { instanceType: "g6.xlarge", spot: false, diskGib: 200, maxHours: 10 };

  it("is the list price on demand, and what AWS says of spot machines", () => {
    expect(describeCost(plan, 2)).toEqual([
      "a g6.xlarge (on demand) $0.81 an hour, its disk of 200 GiB $0.022, 2 sandboxes $0.22",
      "about $1.04 an hour, and $10.45 at most: the machine ends after 10 h",
    ]);
    expect(describeCost({ ...plan, spot: true }, 2, 0.3)[0]).toContain("a g6.xlarge (spot) $0.30 an hour");
  });

  it("does not make a price up", () => {
    const [line] = describeCost({ ...plan, instanceType: "p5.48xlarge" }, 2);
    expect(line).toBe(
      "a p5.48xlarge (on demand): AWS's price list says what it costs an hour; it lives 10 h at most",
    );
    expect(describeCost({ ...plan, spot: true }, 2)[0]).toContain("AWS's price list says");
  });
});
