/** However a command is told to end, and whenever: callers are answered, and nothing is left. */
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import { createRandom } from "../soak/random.ts";
import { type Addressee, type TypedCommand, typeCommand } from "./typed-command.ts";

const key = "a-key";
const started: TypedCommand[] = [];

afterEach(() => {
  for (const command of started.splice(0)) command.end();
});

function type(words: readonly string[], environment: Readonly<Record<string, string>> = {}): TypedCommand {
  const command = typeCommand(words, { CODE_REWARDS_API_KEY: key, ...environment });
  started.push(command);
  return command;
}

async function serveLocally(environment: Readonly<Record<string, string>> = {}) {
  const command = type(["local", "--", "--port", "0", "--slots", "2"], environment);
  const { url } = JSON.parse(await command.firstLine) as { url: string };
  return { command, url };
}

/** A batch of programs that take so long that only the end of the server ends it. */
function grade(url: string, accept: string, key_?: string): Promise<Response> {
  const completion = "```python\nimport time\ntime.sleep(50)\nprint(1)\n```";
  const task = { test_cases: [{ input: "", output: "1" }], limits: { time_ms: 60_000 } };
  return fetch(`${url}/v1/rewards`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      accept,
      ...(key_ && { "idempotency-key": key_ }),
    },
    body: JSON.stringify({ samples: [{ task, completion }] }),
  });
}

async function untilBusy(url: string, workers: number): Promise<void> {
  const look = async () => {
    const answer = await fetch(`${url}/readyz`, { headers: { authorization: `Bearer ${key}` } });
    return ((await answer.json()) as { checks: { pool: { leased: number } } }).checks.pool.leased;
  };
  await expect.poll(look, { timeout: 30_000, interval: 100 }).toBe(workers);
}

function accepts(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
  });
}

describe("npm run local in the middle of batches", () => {
  it.each<{ name: NodeJS.Signals; to: Addressee; what: string }>([
    { name: "SIGTERM", to: "npm", what: "kill" },
    { name: "SIGINT", to: "group", what: "Ctrl-C" },
    { name: "SIGTERM", to: "group", what: "timeout" },
    { name: "SIGHUP", to: "group", what: "a closed terminal" },
    { name: "SIGTERM", to: "all", what: "systemd" },
  ])(
    "that is ended by $what answers them, and leaves no process and no port",
    async ({ name, to }) => {
      const { command, url } = await serveLocally();
      const answers = [
        grade(url, "application/json"),
        grade(url, "application/x-ndjson"),
        grade(url, "application/json", "a-batch"),
      ];
      await untilBusy(url, 2);
      command.signal(name, to);
      await sleep(30);
      command.signal(name, to);
      for (const answer of answers) {
        const response = await answer;
        const last = JSON.parse((await response.text()).trim().split("\n").at(-1) ?? "");
        // Where the signal reached the graded programs, too, they may be over before their service knows why.
        const code = to === "all" ? expect.any(String) : "stopping";
        expect(last, JSON.stringify(last)).toMatchObject({ code });
        expect(last).not.toHaveProperty("rewards");
      }
      // npm is no program of ours: what it makes of a SIGHUP is its own end.
      if (name !== "SIGHUP") expect(await command.exited).toBe(0);
      await expect.poll(() => command.alive(), { timeout: 10_000 }).toEqual([]);
      expect(await accepts(url)).toBe(false);
      expect(command.err.filter((line) => /^ +at |keeper of sandboxes is lost/.test(line))).toEqual([]);
    },
    60_000,
  );
});

describe("over another E2B, no sandbox is left", () => {
  let e2b: E2bServer;
  let proxy: FaultProxy;
  beforeAll(async () => {
    e2b = await startE2bServer({
      apiKey: "e2b_paid",
      plan: { createsPerSecond: 100, concurrentSandboxes: 20 },
    });
    proxy = await startFaultProxy({ control: e2b.apiUrl, sandbox: e2b.sandboxUrl });
    // As on E2B, a sandbox takes a while: it is there before its creation is answered.
    proxy.add({
      path: "control",
      match: { method: "POST", url: "/v2/sandboxes" },
      fault: { kind: "late_answer", ms: 700 },
    });
  });
  afterAll(async () => {
    await proxy?.close();
    await e2b?.close();
  });

  const random = createRandom("signals");
  /** Moments from the first request for a sandbox on, with one before there is any. */
  const draw = (_: unknown, i: number) => ({
    name: random.pick<NodeJS.Signals>(["SIGINT", "SIGTERM"]),
    to: random.pick<Addressee>(["npm", "group", "group", "all"]),
    after: i === 0 ? ("its start" as const) : ("its first creation" as const),
    ms: random.integer(0, i < 4 ? 900 : 4_000),
    again: random.integer(1, 300),
  });
  const environment = () => ({ E2B_API_KEY: "e2b_paid", ...proxy.environment });

  const creations = () =>
    proxy.requests.filter(({ method, path }) => path === "control" && method === "POST");

  async function untilMoment({ after, ms }: ReturnType<typeof draw>, creationsBefore: number): Promise<void> {
    if (after === "its first creation") {
      const look = () => creations().length;
      await expect.poll(look, { timeout: 30_000, interval: 5 }).toBeGreaterThan(creationsBefore);
    }
    await sleep(ms);
  }

  async function end(command: TypedCommand, { name, to, again }: ReturnType<typeof draw>) {
    command.signal(name, to);
    await sleep(again);
    command.signal(name, to);
    const code = await command.exited;
    expect(e2b.sandboxCounts(), command.err.join("\n")).toEqual({
      running: 0,
      paused: 0,
    });
    await expect.poll(() => command.alive(), { timeout: 10_000 }).toEqual([]);
    expect(command.err.filter((line) => /^ +at /.test(line))).toEqual([]);
    return code;
  }

  it.each(Array.from({ length: 9 }, draw))(
    "when npm run local is told by $name to $to, $ms ms after $after",
    async (moment) => {
      const before = creations().length;
      const command = type(["local", "--", "--port", "0", "--plan", "pro"], environment());
      void command.firstLine.then(async (line) => {
        const { url } = JSON.parse(line) as { url: string };
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const wish = { method: "PUT", headers, body: JSON.stringify({ name: "many", workers: 6 }) };
        await Promise.allSettled([grade(url, "application/json"), fetch(`${url}/v1/runs/many`, wish)]);
      });
      await untilMoment(moment, before);
      const number = moment.name === "SIGINT" ? 130 : 143;
      // Before there is a program of ours it is npm, or Node, that the signal ends.
      expect([0, number, null]).toContain(await end(command, moment));
    },
    60_000,
  );

  it.each(Array.from({ length: 7 }, draw))(
    "when npm run smoke -- --e2b is told by $name to $to, $ms ms after $after",
    async (moment) => {
      const before = creations().length;
      const command = type(["smoke", "--", "--e2b"], environment());
      await untilMoment(moment, before);
      const number = moment.name === "SIGINT" ? 130 : 143;
      expect([number, null]).toContain(await end(command, moment));
      expect(command.out).toEqual([]);
    },
    60_000,
  );
});
