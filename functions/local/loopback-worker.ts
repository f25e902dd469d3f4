/** One worker on this machine: a supervisor process that listens on loopback and dies with this process. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readHealth } from "../adapters/supervisor-client.ts";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";

const supervisorPath = fileURLToPath(new URL("../supervisor/main.py", import.meta.url));
const readyTimeoutMs = 30_000;
const pollIntervalMs = 20;

export interface LoopbackWorker {
  readonly workerId: string;
  readonly pid: number;
  readonly baseUrl: string;
  readonly secret: string;
  /** Kills the supervisor and with it everything it started. */
  stop(): Promise<void>;
}

export interface LoopbackWorkerOptions {
  /** The Python interpreter that runs the supervisor and the programs. */
  readonly python: string;
  readonly cpus: readonly number[];
  readonly memoryMib: number;
  readonly clock: Clock;
}

/**
 * Starts a worker and waits until it has proved its isolation.
 *
 * Throws `misconfigured` when Python can't be started, `isolation_failed` (naming each missing property and its
 * remedy) when this host can't isolate.
 */
export async function startLoopbackWorker(options: LoopbackWorkerOptions): Promise<LoopbackWorker> {
  const directory = await mkdtemp(join(tmpdir(), "code-rewards-"));
  const secret = randomBytes(32).toString("hex");
  const secretFile = join(directory, "secret");
  await writeFile(secretFile, secret, { mode: 0o600 });
  const child = spawnSupervisor(options, secretFile);
  try {
    const port = await readPort(child, options.python);
    const worker = describeWorker(child, `http://127.0.0.1:${port}`, secret);
    await waitUntilReady(worker, options.clock);
    return worker;
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function spawnSupervisor(options: LoopbackWorkerOptions, secretFile: string): ChildProcess {
  const settings = {
    "--secret-file": secretFile,
    "--cpus": options.cpus.join(","),
    "--memory-mib": String(options.memoryMib),
    "--exit-with-parent": String(process.pid),
  };
  const args = ["-B", supervisorPath, ...Object.entries(settings).flat()];
  return spawn(options.python, args, { stdio: ["ignore", "pipe", "inherit"] });
}

/** The port of the supervisor's first line. */
async function readPort(child: ChildProcess, python: string): Promise<number> {
  const failed = once(child, "error").then(([error]) => {
    throw new Fault("misconfigured", `${python} could not be started; Python 3.9 or newer is needed`, {
      cause: error,
    });
  });
  const ended = once(child, "exit").then(([code]) => {
    throw new Fault(
      "misconfigured",
      `the supervisor ended at its start (exit code ${code}); see its error above`,
    );
  });
  if (!child.stdout) throw new Error("the supervisor's output is not a pipe");
  const lines = createInterface({ input: child.stdout });
  const firstLine = once(lines, "line").then(([line]) => JSON.parse(line as string).port as number);
  const port = await Promise.race([firstLine, failed, ended]);
  failed.catch(() => {});
  ended.catch(() => {});
  return port;
}

function describeWorker(child: ChildProcess, baseUrl: string, secret: string): LoopbackWorker {
  const pid = child.pid ?? 0;
  return {
    workerId: `local-${pid}`,
    pid,
    baseUrl,
    secret,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function waitUntilReady(worker: LoopbackWorker, clock: Clock): Promise<void> {
  const giveUpAtMs = clock.nowMs() + readyTimeoutMs;
  const headers = { authorization: `Bearer ${worker.secret}` };
  while (clock.nowMs() < giveUpAtMs) {
    const health = await readHealth(
      { baseUrl: worker.baseUrl, headers },
      AbortSignal.timeout(readyTimeoutMs),
    );
    if (health.kind === "ready") return;
    if (health.kind === "refused") {
      const reasons = health.failed.map(
        ({ property, detail, remedy }) => `${property}: ${detail}. To do: ${remedy}`,
      );
      throw new Fault("isolation_failed", `this host can't isolate programs. ${reasons.join("; ")}`);
    }
    await clock.sleep(pollIntervalMs);
  }
  throw new Fault("isolation_failed", `a worker did not prove its isolation within ${readyTimeoutMs} ms`);
}
