/** The commands of the README, as a user types them. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { requestRewards } from "../../functions/local/rewards-client.ts";
import { smokeRewards } from "../../functions/local/smoke-programs.ts";
import { startLocalStackProcess } from "../bench/local-stack-process.ts";
import { listProcessTree } from "../bench/process-tree.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

function runNode(script: string, args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  return run(process.execPath, ["--import", "tsx", script, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    timeout: 60_000,
  });
}

function readMounts(): string {
  return readFileSync("/proc/self/mountinfo", "utf8");
}

function listTemporaryFolders(): string[] {
  return ["/tmp", "/var/tmp", "/dev/shm"].flatMap((folder) =>
    readdirSync(folder).filter((name) => /code-rewards|e2b|sandbox/i.test(name)),
  );
}

function sleepAWhile(_: unknown, i: number) {
  const completion = `\`\`\`python\nimport time\ntime.sleep(1 + ${i} / 100)\nprint(1)\n\`\`\``;
  return { task: { test_cases: [{ input: "", output: "1" }] }, completion };
}

describe("a command that is called wrongly says what is wrong and how it is called, and does nothing", () => {
  const url = { CODE_REWARDS_URL: "http://127.0.0.1:9", CODE_REWARDS_API_KEY: undefined };
  it.each([
    { script: "local/main.ts", args: ["--prot", "1"], says: "Unknown option '--prot'" },
    {
      script: "local/main.ts",
      args: ["--port", "many"],
      says: "--port must be a whole number from 0 to 65535",
    },
    { script: "local/main.ts", args: ["--plan", "free"], says: "--plan must be hobby or pro, not 'free'" },
    { script: "local/smoke.ts", args: ["--e3b"], says: "Unknown option '--e3b'" },
    { script: "local/smoke.ts", args: ["now"], says: "Unexpected argument 'now'" },
    { script: "local/smoke.ts", args: [], env: url, says: "set CODE_REWARDS_API_KEY as well" },
    { script: "stop.ts", args: ["--stag", "x"], says: "Unknown option '--stag'" },
    { script: "../test/soak/main.ts", args: ["--second", "1"], says: "Unknown option '--second'" },
    {
      script: "../test/soak/main.ts",
      args: ["--incidents", "few"],
      says: "--incidents must be a whole number",
    },
    {
      script: "../test/simulation/main.ts",
      args: ["--batches", "0"],
      says: "--batches must be a whole number",
    },
    { script: "../test/scale/main.ts", args: ["--seed", "x"], says: "--seed must be a whole number" },
    { script: "../test/bench/bench.ts", args: ["--ony", "x"], says: "Unknown option '--ony'" },
    { script: "../test/bench/batch/main.ts", args: ["--stand-in"], says: "Unknown option '--stand-in'" },
    {
      script: "../test/bench/handover/main.ts",
      args: ["--rounds", "0"],
      says: "--rounds must be a whole number",
    },
    {
      script: "../test/bench/supervisor/main.ts",
      args: ["--cases", "x"],
      says: "--cases must be a whole number",
    },
  ])("$script $args", async ({ script, args, env = {}, says }) => {
    const failure = await runNode(`functions/${script}`, args, env).catch((error) => error);
    expect(failure.code).toBe(2);
    expect(failure.stdout).toBe("");
    expect(failure.stderr).toContain(says);
    expect(failure.stderr).toContain("npm run ");
    expect(failure.stderr).not.toMatch(/^ +at /m);
  });
});

it.each(["local/main.ts", "local/smoke.ts", "stop.ts"])(
  "%s --help tells how it is called",
  async (script) => {
    const { stdout, stderr } = await runNode(`functions/${script}`, ["--help"]);
    expect(stdout).toMatch(/^npm run /);
    expect(stderr).toBe("");
  },
);

describe("npm run smoke", () => {
  it("prints the five rewards and leaves nothing running", async () => {
    const { stdout, stderr } = await runNode("functions/local/smoke.ts");
    expect(JSON.parse(stdout)).toEqual(smokeRewards);
    expect(stderr).toContain("no sandbox is left running");
    expect(stderr).toMatch(/worker seconds: \d/);
    expect(stderr).not.toMatch(/traceback|exception|warning/i);
  }, 70_000);

  it("uses the endpoint that it is given", async () => {
    const stack = await startLocalStackProcess();
    try {
      const { stdout } = await runNode("functions/local/smoke.ts", [], {
        CODE_REWARDS_URL: stack.url,
        CODE_REWARDS_API_KEY: stack.apiKey,
      });
      expect(JSON.parse(stdout)).toEqual(smokeRewards);
    } finally {
      await stack.stop();
    }
  }, 70_000);
});

describe("npm run local", () => {
  it("leaves no process, mount or folder when it is killed in mid-batch", async () => {
    const stack = await startLocalStackProcess();
    const before = { mounts: readMounts(), folders: listTemporaryFolders() };
    const batch = requestRewards(stack, { samples: Array.from({ length: 20 }, sleepAWhile) });
    const cut = expect(batch).rejects.toThrow();
    await expect.poll(() => listProcessTree(stack.pid).length, { timeout: 10_000 }).toBeGreaterThan(8);
    const tree = listProcessTree(stack.pid);
    const exited = once(stack.child, "exit");
    stack.child.kill("SIGKILL");
    await exited;
    await cut;
    const isGone = () => tree.every((pid) => listProcessTree(pid).length === 0);
    await expect.poll(isGone, { timeout: 5_000 }).toBe(true);
    expect({ mounts: readMounts(), folders: listTemporaryFolders() }).toEqual(before);
  }, 60_000);

  it("says that a port is taken", async () => {
    const stack = await startLocalStackProcess();
    try {
      const port = new URL(stack.url).port;
      const failure = await runNode("functions/local/main.ts", ["--port", port]).catch((error) => error);
      expect(failure.code).toBe(1);
      expect(failure.stderr).toContain("The port is in use.");
    } finally {
      await stack.stop();
    }
  }, 60_000);

  it("refuses a host that can't isolate, naming what is missing and what to do", async () => {
    // A namespace in which no further user namespaces may be made: what a hardened container looks like from inside.
    const script = `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`;
    const child = spawn(
      "unshare",
      [
        "--user",
        "--map-root-user",
        "sh",
        "-c",
        script,
        "sh",
        process.execPath,
        "--import",
        "tsx",
        "functions/local/main.ts",
        "--port",
        "0",
      ],
      { cwd: root, stdio: ["ignore", "ignore", "pipe"] },
    );
    const lines: string[] = [];
    createInterface({ input: child.stderr }).on("line", (line) => lines.push(line));
    const [code] = await once(child, "close");
    expect(code).toBe(1);
    const refusal = lines.find((line) => line.startsWith("isolation_failed:"));
    expect(refusal).toMatch(/can't be made on this host: .*unshare/);
  }, 60_000);
});
