import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { type Answer, type Endpoint, openChunk, readHealth } from "../../supervisor/wire.ts";
import type { Sources } from "./sources.ts";

const source = "import sys, json\nnumbers = json.load(sys.stdin)\nprint(json.dumps({'sum': sum(numbers)}))\n";
const limits = { time_ms: 2000, memory_mib: 256, output_bytes: 65_536 };

export interface SupervisorProcess {
  readonly pid: number;
  /** Runs programs of as many cases each in one chunk. Throws when one doesn't come out right. */
  execute(programs: number, casesOfEach: number): Promise<Answer>;
  stop(): Promise<void>;
}

/** One slot on the last CPU, so that nothing runs beside a case but what belongs to it. */
export async function startSupervisor({ folder }: Sources, cpus = "1"): Promise<SupervisorProcess> {
  const secret = randomBytes(16).toString("hex");
  const secretFile = join(folder, "secret");
  writeFileSync(secretFile, secret, { mode: 0o600 });
  const flags = ["--secret-file", secretFile, "--cpus", cpus, "--exit-with-parent", String(process.pid)];
  const child = spawn(process.env.PYTHON ?? "python3", [join(folder, "main.py"), ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const endpoint = { port: await readPort(child), secret };
  await becomeReady(endpoint);
  let chunks = 0;
  return {
    pid: child.pid ?? 0,
    async execute(programs, casesOfEach) {
      chunks += 1;
      const inputs = Array.from({ length: casesOfEach }, (_, index) => `[1, 2, ${index}]`);
      const answer = await openChunk(endpoint, {
        fencing_token: 1,
        chunk_id: `chunk ${chunks}`,
        deadline_ms: 120_000,
        programs: Array.from({ length: programs }, (_, index) => ({
          id: `program ${index}`,
          source: `${source}# ${chunks} ${index}\n`,
          inputs,
          limits,
        })),
      }).answer;
      const right = answer.lines.filter((line) => line.status === "exited" && line.exit_code === 0);
      if (right.length !== programs * casesOfEach) {
        throw new Error(`only ${right.length} cases came out right: ${JSON.stringify(answer).slice(0, 500)}`);
      }
      return answer;
    },
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

async function readPort(child: ChildProcess): Promise<number> {
  if (!child.stdout) throw new Error("the supervisor has no output");
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return JSON.parse(line).port;
}

async function becomeReady(endpoint: Required<Endpoint>): Promise<void> {
  for (let health = await readHealth(endpoint); health.status !== 200; health = await readHealth(endpoint)) {
    if (health.body.state !== "starting") throw new Error(`not ready: ${JSON.stringify(health.body)}`);
    await pause(50);
  }
}
