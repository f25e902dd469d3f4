/**
 * The published recipe's shape, written anew, to be compared with: the trainer itself owns a pool of sandboxes, and each
 * program costs it four requests: renew the time to live, write the program, write the inputs, run one command that
 * takes the cases in turn. Programs are not told apart: who is sampled twice runs twice.
 */
import { readFile } from "node:fs/promises";
import { Sandbox, type SandboxOpts } from "e2b";
import type { BenchSample, Contestant } from "../contestant.ts";

const folder = "/opt/recipe";
const ttlMs = 600_000;
const sourceLimitBytes = 65_536;
const outputLimitBytes = 65_536;

interface CaseOutcome {
  readonly exit_code: number;
  readonly stdout: string;
}

export async function createRecipeContestant(e2b: SandboxOpts, workers: number): Promise<Contestant> {
  const all: Sandbox[] = [];
  for (let index = 0; index < workers; index += 1) all.push(await createWorker(e2b));
  const idle = createIdleWorkers(all);
  return {
    name: "recipe",
    grade: (samples) =>
      Promise.all(
        samples.map(async (sample) => {
          const source = extractSource(sample.completion);
          if (source === null) return 0;
          const worker = await idle.take();
          try {
            return await evaluate(worker, source, sample);
          } finally {
            idle.giveBack(worker);
          }
        }),
      ),
    close: async () => {
      await Promise.all(all.map((worker) => worker.kill()));
    },
  };
}

async function createWorker(e2b: SandboxOpts): Promise<Sandbox> {
  const worker = await Sandbox.create({ ...e2b, timeoutMs: ttlMs, allowInternetAccess: false });
  for (const name of ["isolate.sh", "evaluate.py"]) {
    const text = await readFile(new URL(name, import.meta.url), "utf8");
    await worker.files.write(`${folder}/${name}`, text, { user: "root" });
  }
  return worker;
}

function createIdleWorkers(workers: readonly Sandbox[]) {
  const idle = [...workers];
  const waiting: ((worker: Sandbox) => void)[] = [];
  return {
    async take(): Promise<Sandbox> {
      return idle.pop() ?? new Promise((resolve) => waiting.push(resolve));
    },
    giveBack(worker: Sandbox): void {
      const next = waiting.shift();
      if (next) next(worker);
      else idle.push(worker);
    },
  };
}

function extractSource(completion: string): string | null {
  const source = /```(?:python)?[ \t]*\r?\n(.*?)\r?\n```/s.exec(completion)?.[1];
  return source === undefined || Buffer.byteLength(source) > sourceLimitBytes ? null : source;
}

async function evaluate(worker: Sandbox, source: string, { task }: BenchSample): Promise<number> {
  const inputs = JSON.stringify(task.test_cases.map(({ input }) => input));
  await worker.setTimeout(ttlMs);
  await worker.files.write(`${folder}/program.py`, source, { user: "root" });
  await worker.files.write(`${folder}/inputs.json`, inputs, { user: "root" });
  const done = await worker.commands.run(`python3 -I -B ${folder}/evaluate.py`, {
    user: "root",
    timeoutMs: 2_000 * task.test_cases.length + 10_000,
  });
  const outcomes: CaseOutcome[] = JSON.parse(done.stdout);
  const passed = task.test_cases.filter(({ output }, index) => isRight(outcomes[index], output));
  return passed.length / task.test_cases.length;
}

function isRight(outcome: CaseOutcome | undefined, expected: string): boolean {
  if (outcome?.exit_code !== 0 || Buffer.byteLength(outcome.stdout) > outputLimitBytes) return false;
  try {
    return sorted(outcome.stdout) === sorted(expected);
  } catch {
    return false;
  }
}

/** JSON text with its keys in order, which is enough for the programs of the bench. */
function sorted(text: string): string {
  return JSON.stringify(JSON.parse(text), (_, value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
