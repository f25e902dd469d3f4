import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { describe } from "vitest";
import type { Target } from "./contract.ts";

/** A server in another process. */
export interface ServerProcess {
  readonly target: Required<Target>;
  readonly child: ChildProcess;
  /** Asks it to end, and waits. */
  stop(): Promise<void>;
}

export interface ServerProcessOptions {
  /** Another user than the tests'. Only root can ask for one. */
  readonly uid?: number;
  /** Where the server may leave files. */
  readonly scratch?: string;
}

const API_KEY = "e2b_test";
const SECRET_NAME = "A_SECRET_OF_THE_SERVER";
export const SECRET = "kept-from-sandboxes";

/** An ordinary user that every Linux has. */
const ORDINARY_UID = 65534;

/** Describes the same for a server of each kind of user that the tests can be: root's, and an ordinary one's. */
export function describeEachUser(define: (uid: number | undefined, name: string) => void): void {
  const own = process.getuid?.() === 0 ? "as root" : "as an ordinary user";
  describe(own, () => define(undefined, own));
  if (own !== "as root") return;
  const other = "as an ordinary user";
  describe(other, () => define(ORDINARY_UID, other));
}

/** Starts a server; `uid` makes it another user's, who must be able to read this folder. */
export async function startServerProcess(options: ServerProcessOptions = {}): Promise<ServerProcess> {
  const apiKey = API_KEY;
  const scratch = options.scratch ?? "/tmp";
  const child = spawn(
    process.execPath,
    ["--import", "tsx", fileURLToPath(new URL("./serve.ts", import.meta.url)), apiKey],
    {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        PATH: process.env.PATH ?? "",
        HOME: scratch,
        TMPDIR: scratch,
        [SECRET_NAME]: SECRET,
        TSX_DISABLE_CACHE: "1",
      },
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    },
  );
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const lines = createInterface(child.stdout);
  const ended = once(child, "exit").then(() => [undefined]);
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string | undefined];
  if (line === undefined) throw new Error(`the server did not start: ${complaints}`);
  return {
    target: { apiKey, ...JSON.parse(line) },
    child,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.stdin.end();
      await exit;
    },
  };
}
