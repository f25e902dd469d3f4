import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Target } from "./contract.ts";

/** A server in another process. */
export interface ServerProcess {
  readonly target: Required<Target>;
  readonly child: ChildProcess;
  /** Asks it to end, and waits. */
  stop(): Promise<void>;
}

/** An ordinary user that every Linux has. */
export const ORDINARY_UID = 65534;

/** Starts a server; `uid` makes it another user's, who must be able to read this folder. */
export async function startServerProcess(options: { readonly uid?: number } = {}): Promise<ServerProcess> {
  const apiKey = "e2b_test";
  const child = spawn(
    process.execPath,
    ["--import", "tsx", fileURLToPath(new URL("./serve.ts", import.meta.url)), apiKey],
    {
      stdio: ["pipe", "pipe", "pipe"],
      env: { PATH: process.env.PATH ?? "", HOME: "/tmp", TMPDIR: "/tmp" },
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
