import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface LocalStackProcess {
  readonly pid: number;
  readonly url: string;
  readonly apiKey: string;
  /** How E2B's own client reaches the server of sandboxes. */
  readonly e2b: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** Starts `npm run local`'s program as a process of its own and waits for its ready line. */
export async function startLocalStackProcess(
  args: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): Promise<LocalStackProcess> {
  const child = spawn(
    process.execPath,
    ["--import", "tsx", "functions/local/main.ts", "--port", "0", ...args],
    { cwd: root, env: { ...process.env, ...environment }, stdio: ["ignore", "pipe", "pipe"] },
  );
  child.stderr.pipe(process.stderr, { end: false });
  const exited = once(child, "exit");
  const firstLine = once(createInterface({ input: child.stdout }), "line");
  const [line] = await Promise.race([
    firstLine,
    exited.then(([code]) => Promise.reject(new Error(`the stack ended at its start with ${code}`))),
  ]);
  const ready = JSON.parse(line as string);
  return {
    pid: child.pid ?? 0,
    url: ready.url,
    apiKey: ready.api_key,
    e2b: { apiKey: "e2b_local", apiUrl: ready.e2b_api_url, sandboxUrl: ready.e2b_sandbox_url },
    child,
    async stop() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
