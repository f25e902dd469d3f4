import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { dirname } from "node:path";
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

const SERVE_FILE = fileURLToPath(new URL("./serve.ts", import.meta.url));
const API_KEY = "e2b_test";
const SECRET_NAME = "A_SECRET_OF_THE_SERVER";
export const SECRET = "kept-from-sandboxes";

/** An ordinary user that every Linux has. */
const ORDINARY_UID = 65534;

/**
 * Describes the same for a server of each kind of user that the tests can be: root's, and an ordinary one's. Root of a
 * checkout in a closed home can't be the latter, and is told so.
 */
export function describeEachUser(define: (uid: number | undefined, name: string) => void): void {
  const ordinary = "as an ordinary user";
  const own = process.getuid?.() === 0 ? "as root" : ordinary;
  describe(own, () => define(undefined, own));
  if (own === ordinary) return;
  const closed = [process.execPath, SERVE_FILE].map(closedFolderOf).find((folder) => folder !== null);
  if (closed === undefined) {
    describe(ordinary, () => define(ORDINARY_UID, ordinary));
  } else {
    console.log(`The local E2B server ${ordinary}: skipped, others may not enter ${closed}.`);
    describe.skip(ordinary, () => define(ORDINARY_UID, ordinary));
  }
}

/** The nearest folder above a file that others may not enter. */
function closedFolderOf(file: string): string | null {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0) return folder;
  }
  return null;
}

/** Starts a server; `uid` makes it another user's, who must be able to read this folder. */
export async function startServerProcess(options: ServerProcessOptions = {}): Promise<ServerProcess> {
  const apiKey = API_KEY;
  const scratch = options.scratch ?? "/tmp";
  const child = spawn(process.execPath, ["--import", "tsx", SERVE_FILE, apiKey], {
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH ?? "",
      HOME: scratch,
      TMPDIR: scratch,
      [SECRET_NAME]: SECRET,
      TSX_DISABLE_CACHE: "1",
    },
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
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
