import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";

/** What a new sandbox is made of. */
export interface SandboxOrder {
  readonly cpus: readonly number[];
  readonly diskMib: number;
  readonly accessToken: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** The process that makes real sandboxes, seen from here. Every call throws `Error` with the keeper's reason. */
export interface Keeper {
  /** CPUs that sandboxes may use. */
  readonly cpus: readonly number[];
  /** Resolves, with the host's pid of the sandbox's first process, when the sandbox answers calls. */
  create(sandboxId: string, order: SandboxOrder): Promise<number>;
  /** Resolves when no process of the sandbox is left. */
  kill(sandboxId: string): Promise<void>;
  freeze(sandboxId: string): Promise<void>;
  thaw(sandboxId: string): Promise<void>;
  /** A connection to a port inside, or to the inner service for null. */
  dial(sandboxId: string, port: number | null): Promise<Socket>;
  /** Ends the keeper and with it every sandbox. */
  close(): Promise<void>;
}

export interface KeeperEvents {
  /** The sandbox's first process ended although nobody killed it. */
  onDied(sandboxId: string): void;
  /** The keeper ended although nobody closed it: every sandbox is gone. */
  onLost(detail: string): void;
  onLog(line: string): void;
}

interface Answer {
  readonly socket: Socket | undefined;
  readonly pid: number | undefined;
}

interface Pending {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

const KEEPER_FILE = fileURLToPath(new URL("./sandbox/keeper.py", import.meta.url));
const START_LIMIT_MS = 15_000;
const NEEDS = "it needs Linux 5.12 or later, python3 3.9 or later, and user namespaces that may be created";

/**
 * Starts the keeper, `python3` as found in PATH. Its environment is empty but for that: what runs in a sandbox can
 * learn nothing from it.
 */
export async function startKeeper(events: KeeperEvents): Promise<Keeper> {
  const child = spawn("python3", ["-s", "-E", "-B", KEEPER_FILE], {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LANG: "C.UTF-8" },
    cwd: "/",
  });
  const pending = new Map<number, Pending>();
  let isClosing = false;
  let stderrTail = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderrTail = (stderrTail + text).slice(-2000);
    events.onLog(text);
  });
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(`python3 did not start: ${error.message}`));
    child.once("exit", (code, signal) => resolve(`it ended (${signal ?? code}): ${stderrTail.trim()}`));
  });
  const cpus = await waitForReady(child, exited);
  exited.then((detail) => {
    for (const { reject } of pending.values())
      reject(new Error(`the keeper of sandboxes is gone: ${detail}`));
    pending.clear();
    if (!isClosing) events.onLost(detail);
  });
  child.on("message", (message, handle) => {
    const { id, error, died, pid } = message as { id?: number; error?: string; died?: string; pid?: number };
    if (died !== undefined) events.onDied(died);
    const waiting = id === undefined ? undefined : pending.get(id);
    if (id === undefined || waiting === undefined) {
      if (handle instanceof Socket) handle.destroy();
      return;
    }
    pending.delete(id);
    if (error !== undefined) waiting.reject(new Error(error));
    else waiting.resolve({ socket: handle instanceof Socket ? handle : undefined, pid });
  });

  let lastId = 0;
  const ask = (message: Record<string, unknown>) =>
    new Promise<Answer>((resolve, reject) => {
      lastId += 1;
      const id = lastId;
      pending.set(id, { resolve, reject });
      child.send({ id, ...message }, (error) => {
        if (error === null || !pending.delete(id)) return;
        reject(new Error(`the keeper of sandboxes is gone: ${error.message}`));
      });
    });

  return {
    cpus,
    async create(sandbox, { cpus, diskMib, accessToken, environment }) {
      const order = { cpus, disk_mib: diskMib, access_token: accessToken, environment };
      const { pid } = await ask({ do: "create", sandbox, order });
      if (pid === undefined) throw new Error("the keeper answered a creation without a pid");
      return pid;
    },
    async kill(sandbox) {
      await ask({ do: "kill", sandbox });
    },
    async freeze(sandbox) {
      await ask({ do: "freeze", sandbox });
    },
    async thaw(sandbox) {
      await ask({ do: "thaw", sandbox });
    },
    async dial(sandbox, port) {
      const { socket } = await ask({ do: "dial", sandbox, port });
      if (socket === undefined) throw new Error("the keeper answered a dial without a connection");
      return socket;
    },
    async close() {
      isClosing = true;
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function waitForReady(child: ChildProcess, exited: Promise<string>): Promise<readonly number[]> {
  const limit = AbortSignal.timeout(START_LIMIT_MS);
  const first = once(child, "message", { signal: limit }).then(([message]) => ({ message }));
  const early = await Promise.race([first, exited.then((detail) => ({ detail }))]).catch(() => ({
    detail: `no answer in ${START_LIMIT_MS} ms`,
  }));
  if ("message" in early) return (early.message as { ready: { cpus: number[] } }).ready.cpus;
  child.kill("SIGKILL");
  throw new Error(`Sandboxes can't be made on this host (${NEEDS}): ${early.detail}`);
}
