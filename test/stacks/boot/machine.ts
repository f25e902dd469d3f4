/**
 * A training machine without the machine: the boot script as a deployment sends it, AWS's own command against a
 * stand-in for AWS, the metadata that EC2 would serve. Only `shutdown` is not what it says.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AwsStandIn } from "../aws/stand-in.ts";
import { toolsFolder } from "../aws/tools.ts";
import { keyParameter, type TrainingSite } from "../aws/training-site.ts";
import { type Metadata, startMetadata } from "./metadata.ts";

export interface MachineOptions {
  /** The script as a deployment sends it. */
  readonly script: string;
  readonly aws: AwsStandIn;
  readonly site: TrainingSite;
  readonly name: string;
  /** Tag of the job; a machine that somebody starts by hand has none. */
  readonly job?: string;
  readonly maxS?: number;
  readonly idleS?: number;
  readonly graceS?: number;
  readonly patienceS?: number;
  /** Where uv is, once a machine has installed it. */
  readonly uvFolder?: string;
}

export interface Machine {
  readonly metadata: Metadata;
  readonly folder: string;
  /** What was asked of `shutdown`, call by call. */
  shutdowns(): string[];
  log(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves when the script has ended. */
  readonly over: Promise<void>;
  remove(): Promise<void>;
}

export async function bootMachine(options: MachineOptions): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), "code-rewards-machine-"));
  const metadata = await startMetadata({
    "instance-id": options.name,
    "placement/region": "us-east-1",
    ...(options.job === undefined ? {} : { "tags/instance/code-rewards-job": options.job }),
  });
  const script = join(folder, "user-data.sh");
  writeFileSync(script, replaceFacts(options));
  const child = spawn("bash", [script], {
    cwd: folder,
    detached: true,
    stdio: ["ignore", "ignore", "ignore"],
    env: environmentOf(options, folder, metadata),
  });
  const over = once(child, "exit").then(() => {});
  return {
    metadata,
    folder,
    over,
    shutdowns: () => readLines(join(folder, "shutdowns.txt")),
    log: () => readLines(join(folder, "home/log.txt")).join("\n"),
    signal: (name) => void child.kill(name),
    async remove() {
      endAll(child, folder);
      await over;
      await metadata.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The deployment's own lines name resources that are not here. */
function replaceFacts({ script, site, maxS = 600, idleS = 600 }: MachineOptions): string {
  const facts = {
    BUCKET: site.bucket,
    MAX_S: String(maxS),
    IDLE_S: String(idleS),
    API_KEY_PARAMETER: keyParameter,
  };
  return Object.entries(facts).reduce((text, [name, value]) => {
    const line = new RegExp(`^export ${name}='.*'$`, "m");
    if (!line.test(text)) throw new Error(`the script has no line for ${name}`);
    return text.replace(line, `export ${name}='${value}'`);
  }, script);
}

function environmentOf(
  { aws, uvFolder, graceS = 20, patienceS = 20 }: MachineOptions,
  folder: string,
  metadata: Metadata,
) {
  const home = join(folder, "home");
  mkdirSync(home);
  if (uvFolder !== undefined) symlinkSync(uvFolder, join(home, "uv"));
  const stubs = join(folder, "stubs");
  mkdirSync(stubs);
  writeFileSync(join(stubs, "shutdown"), `#!/bin/sh\necho "$*" >> '${join(folder, "shutdowns.txt")}'\n`);
  chmodSync(join(stubs, "shutdown"), 0o755);
  // Of the tools only AWS's command: the machine's Python is its own.
  symlinkSync(join(toolsFolder, "aws"), join(stubs, "aws"));
  return {
    ...aws.environment,
    PATH: `${stubs}:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME: process.env.HOME ?? "/root",
    METADATA_URL: metadata.url,
    TRAINER_HOME: home,
    LOOK_EVERY_S: "1",
    KEEP_EVERY_S: "2",
    RETRY_S: "0",
    GRACE_S: String(graceS),
    PATIENCE_S: String(patienceS),
  };
}

function readLines(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : [];
}

/** The script's own group, and the job, which is a session of its own. */
function endAll(child: ChildProcess, folder: string): void {
  const job = findProcess(join(folder, "home/trainer/.venv/bin/python"));
  for (const pid of [child.pid, job]) {
    try {
      if (pid !== undefined) process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
}

function findProcess(command: string): number | undefined {
  for (const pid of readdirPids()) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(command)) return pid;
    } catch {
      // It has ended while we looked.
    }
  }
  return undefined;
}

function readdirPids(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && pid > 0);
}
