import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { unfitHost } from "./host-needs.ts";

/** What the keeper's process answers: a connection beside a dial, a pid beside a creation. */
export interface Answer {
  readonly socket: Socket | undefined;
  readonly pid: number | undefined;
}

/** The line to the keeper's process. */
export interface KeeperChannel {
  /** What it told when it was ready. */
  readonly ready: { readonly cpus: readonly number[] };
  /** Sends a request. Throws `Error` with the reason told, or with the keeper's end. */
  ask(request: Record<string, unknown>): Promise<Answer>;
  /** Kills the process, and waits. */
  close(): Promise<void>;
}

export interface KeeperEvents {
  /** The sandbox's first process ended although nobody killed it. */
  onDied(sandboxId: string): void;
  /** The keeper ended although nobody closed it: every sandbox is gone. */
  onLost(detail: string): void;
  onLog(line: string): void;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

interface Message {
  readonly id?: number;
  readonly error?: string;
  readonly died?: string;
  readonly pid?: number;
}

type FirstMessage = { readonly ready: KeeperChannel["ready"] } | { readonly refused: string };

const KEEPER_FILE = fileURLToPath(new URL("./sandbox/keeper.py", import.meta.url));
const START_LIMIT_MS = 15_000;
const COMPLAINTS_LIMIT_CHARS = 2000;

/**
 * Starts the keeper's process, `python3` as found in PATH. Its environment holds little else: what runs in a sandbox
 * can learn nothing from it.
 */
export async function openKeeperChannel(events: KeeperEvents): Promise<KeeperChannel> {
  const child = spawn("python3", ["-s", "-E", "-B", KEEPER_FILE], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: process.env.HOME ?? "/", LANG: "C.UTF-8" },
    cwd: "/",
    detached: true, // what a terminal or a supervisor tells our whole group is for us, who end the keeper last
  });
  const waiting = new Map<number, Waiting>();
  const exited = watchExit(child, events);
  const ready = await waitForReady(child, exited);
  child.on("message", (message, handle) => {
    hear(message as Message, handle instanceof Socket ? handle : undefined, waiting, events);
  });
  let isClosing = false;
  exited.then((detail) => {
    for (const { reject } of waiting.values()) reject(gone(detail));
    waiting.clear();
    if (!isClosing) events.onLost(detail);
  });
  let lastId = 0;
  return {
    ready,
    ask: (request) =>
      new Promise((resolve, reject) => {
        lastId += 1;
        const id = lastId;
        waiting.set(id, { resolve, reject });
        child.send({ id, ...request }, (error) => {
          if (error !== null && waiting.delete(id)) reject(gone(error.message));
        });
      }),
    async close() {
      isClosing = true;
      child.kill("SIGKILL");
      await exited;
    },
  };
}

const gone = (detail: string) => new Error(`the keeper of sandboxes is gone: ${detail}`);

function watchExit(child: ChildProcess, events: KeeperEvents): Promise<string> {
  let complaints = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaints = (complaints + text).slice(-COMPLAINTS_LIMIT_CHARS);
    events.onLog(text);
  });
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(`python3 did not start: ${error.message}`));
    child.once("exit", (code, signal) => resolve(`it ended (${signal ?? code}): ${complaints.trim()}`));
  });
}

async function waitForReady(child: ChildProcess, exited: Promise<string>): Promise<KeeperChannel["ready"]> {
  const limit = AbortSignal.timeout(START_LIMIT_MS);
  const first = once(child, "message", { signal: limit }).then(([message]) => message as FirstMessage);
  const told = await Promise.race([first, exited.then((refused) => ({ refused }))]).catch(() => ({
    refused: `no answer in ${START_LIMIT_MS} ms`,
  }));
  if ("ready" in told) return told.ready;
  child.kill("SIGKILL");
  throw unfitHost(told.refused);
}

function hear(
  { id, error, died, pid }: Message,
  socket: Socket | undefined,
  waiting: Map<number, Waiting>,
  events: KeeperEvents,
): void {
  if (died !== undefined) events.onDied(died);
  const asked = id === undefined ? undefined : waiting.get(id);
  if (id === undefined || asked === undefined) {
    socket?.destroy();
    return;
  }
  waiting.delete(id);
  if (error === undefined) asked.resolve({ socket, pid });
  else asked.reject(new Error(error));
}
