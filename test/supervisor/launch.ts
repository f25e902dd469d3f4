/**
 * Launches the supervisor's real program, as root or as an ordinary user, and proves at its end that nothing of it is
 * left.
 *
 * Its sources are copied to a folder of its own first: that is how a worker gets them, it makes them readable for any
 * user, and the folder's name in a command line tells this supervisor's processes from everybody else's.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { controlGroupsOf, hostMounts, livingOf, processesByCommandLine, processTree } from "./host-view.ts";
import { pause, vanish } from "./waiting.ts";
import { type Answer, type Endpoint, readHealth } from "./wire.ts";

export type Mode = "root" | "rootless";

const IS_ROOT = process.getuid?.() === 0;

/** Both modes where the tests run as root, else only the one that an ordinary user has. */
export const modes: readonly Mode[] = IS_ROOT ? ["root", "rootless"] : ["rootless"];

/** An ordinary user without a name, a home or another process. */
const ORDINARY_ID = 61_000;

const SOURCES = fileURLToPath(new URL("../../functions/supervisor", import.meta.url));
const STARTING_MS = 30_000;

export interface LaunchOptions {
  mode: Mode;
  arguments?: string[];
  /** Marks the supervisor's own environment, so that a test can see whether a program learns of it. */
  environment?: Record<string, string>;
  /** A command that runs the one after it, in a poorer world. */
  wrapper?: string[];
}

export interface Launched {
  readonly pid: number;
  readonly endpoint: Required<Endpoint>;
  readonly folder: string;
  /** The first health that says more than "starting". */
  readonly health: Answer;
  /** Ends it by `signal` and asserts that no process, mount, control group or file of it is left. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** The interpreter of a mode: one that the mode's user may read. */
export function pythonOf(mode: Mode): string {
  const other = process.env.PYTHON_ROOTLESS ?? "/usr/bin/python3";
  return mode === "rootless" && IS_ROOT ? other : (process.env.PYTHON ?? "python3");
}

/** Options of `spawn` that make a process belong to the mode's user. */
export function userOf(mode: Mode): { uid?: number; gid?: number } {
  return mode === "rootless" && IS_ROOT ? { uid: ORDINARY_ID, gid: ORDINARY_ID } : {};
}

/** A folder with the supervisor's sources, and in it a scratch folder that belongs to the mode's user. */
export function installSources(mode: Mode): { folder: string; main: string; scratch: string } {
  const folder = mkdtempSync(`${tmpdir()}/supervisor-test-`);
  const filter = (path: string): boolean => !path.includes("__pycache__");
  cpSync(SOURCES, `${folder}/supervisor`, { recursive: true, filter });
  const scratch = `${folder}/scratch`;
  mkdirSync(scratch);
  giveTo(mode, scratch);
  execFileSync("chmod", ["-R", "a+rX", folder]);
  return { folder, main: `${folder}/supervisor/main.py`, scratch };
}

/** The environment of a supervisor: what it leaves in a temporary folder is found in `scratch`. */
export function environmentOf(scratch: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, LANG: "C.UTF-8", TMPDIR: scratch, HOME: scratch };
}

export async function launchSupervisor(options: LaunchOptions): Promise<Launched> {
  const { mode } = options;
  const { folder, main, scratch } = installSources(mode);
  const mountsBefore = hostMounts();
  const secret = randomBytes(24).toString("hex");
  const secretFile = `${scratch}/secret`;
  writeFileSync(secretFile, secret, { mode: 0o600 });
  giveTo(mode, secretFile);
  const child = spawnSupervisor(options, main, scratch, secretFile);
  const pid = child.pid ?? 0;
  const diary = keepDiary(child);

  async function stop(signal: NodeJS.Signals): Promise<void> {
    const tree = processTree(pid);
    await endChild(child, signal);
    try {
      expect(diary.complaints(), "standard error of the supervisor").not.toMatch(/Traceback/);
      await vanish(() => livingOf(tree), "processes of the supervisor's tree");
      await vanish(() => processesByCommandLine(folder), "processes that name the supervisor's folder");
      if (signal !== "SIGKILL") await vanish(() => controlGroupsOf(pid), "control groups");
      const mounts = hostMounts().filter((point) => !mountsBefore.includes(point));
      expect({ mounts, files: readdirSync(scratch) }).toEqual({ mounts: [], files: [] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  try {
    const endpoint = { port: await diary.port, secret };
    const health = await healthAfterStart(endpoint);
    return { pid, endpoint, folder, health, stop };
  } catch (error) {
    await endChild(child, "SIGKILL");
    rmSync(folder, { recursive: true });
    throw new Error(`the supervisor did not start: ${diary.complaints()}`, { cause: error });
  }
}

function giveTo(mode: Mode, path: string): void {
  const { uid, gid } = userOf(mode);
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}

function spawnSupervisor(
  { mode, arguments: extra = [], environment = {}, wrapper = [] }: LaunchOptions,
  main: string,
  scratch: string,
  secretFile: string,
): ChildProcess {
  const where = ["--host", "127.0.0.1", "--port", "0"];
  const flags = [...where, "--secret-file", secretFile, "--exit-with-parent", String(process.pid), ...extra];
  const [command = "", ...rest] = [...wrapper, pythonOf(mode), main, ...flags];
  return spawn(command, rest, {
    cwd: scratch,
    env: { ...environmentOf(scratch), ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a session of its own: an attack on its process group must not reach the tests
    ...userOf(mode),
  });
}

/** What the supervisor prints: its port, once it listens, and its complaints. */
function keepDiary(child: ChildProcess): { port: Promise<number>; complaints: () => string } {
  let output = "";
  let complaints = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const port = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`it ended with ${code ?? signal}`)));
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const end = output.indexOf("\n");
      if (end >= 0) resolve(JSON.parse(output.slice(0, end)).port);
    });
  });
  port.catch(() => {});
  return { port, complaints: () => complaints };
}

async function healthAfterStart(endpoint: Endpoint): Promise<Answer> {
  for (const end = performance.now() + STARTING_MS; performance.now() < end; await pause()) {
    const health = await readHealth(endpoint);
    if (health.body.state !== "starting") return health;
    expect(health).toMatchObject({ status: 503, body: { state: "starting" } });
  }
  throw new Error(`it was still starting after ${STARTING_MS} ms`);
}

async function endChild(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await ended;
}
