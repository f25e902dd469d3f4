/** Programs whose function is called, by the supervisor or by tests in a process beside them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { modes } from "./launch.ts";
import { type Limits, type Line, openChunk, type Program } from "./wire.ts";

const test = (statement: string) => JSON.stringify({ kind: "asserts", before: "", setup: "", statement });

function tested(id: string, source: string, statements: string[], limits: Partial<Limits> = {}): Program {
  return { ...makeProgram(id, source, statements.map(test), limits), mode: "tests" };
}

function describeCase(input: number): string {
  return JSON.stringify({ input: `${input}`, expected: `${input}` });
}

function endsOf(lines: Line[]): Line[] {
  return lines.filter(({ type }) => type === "ended").sort((a, b) => (a.case ?? 0) - (b.case ?? 0));
}

/** What a process can see of others: processes, descriptors, files, sockets, who sent a signal. */
const look = `
import os, socket
def f(do=None):
    own = socket.socket(socket.AF_UNIX)
    return {
        "processes": [name for name in os.listdir("/proc") if name.isdigit()],
        "files": sorted(os.listdir("/tmp") + os.listdir("/dev/shm")),
        "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
    }
def listen():
    global kept
    kept = socket.socket(socket.AF_UNIX)
    kept.bind("\\0program")
    kept.listen()
def kill():
    for pid in range(2, 99):
        try: os.kill(pid, 9); return pid
        except OSError: pass
`;

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  beforeAll(async () => {
    supervisor = await startSupervisor({ mode });
  }, 60_000);
  afterAll(() => supervisor.close());

  it("a call's result is beside what the program prints", async () => {
    const program = makeProgram("p", "def f(x):\n    print('hello')\n    return (x, None)", [
      '{"function":"f","arguments":[1]}',
    ]);
    const { lines } = await supervisor.execute(supervisor.chunk([{ ...program, mode: "call" }]));
    expect(endsOf(lines)).toMatchObject([
      { status: "exited", exit_code: 0, stdout: "hello\n", result: '{"value":{"tuple":[1,null]}}\n' },
    ]);
  });

  it("tests and program see nothing of each other", async () => {
    const seen = "open('/tmp/mark', 'w').close()\nseen = f()\n";
    const program = tested("p", look, [
      `${seen}assert seen["processes"] == ["1"], seen`,
      `${seen}assert seen["files"] == ["main.py"], seen`,
      `${seen}assert set(seen["descriptors"]) <= {"pipe", "socket", "/memfd", "/proc/1/fd"}, seen`,
      "assert kill() is None",
      "assert listen() is None\nimport socket\ntry: socket.socket(socket.AF_UNIX)\nexcept OSError: pass\nelse: assert False",
      "import os\nassert f()['processes'] == [p for p in os.listdir('/proc') if p.isdigit()]",
    ]);
    const { lines } = await supervisor.execute(supervisor.chunk([program]));
    const found = endsOf(lines).map(({ status, result, stderr_tail }) => [status, result, stderr_tail]);
    expect(found).toEqual(found.map(() => ["exited", "passed", ""]));
    expect(found).toHaveLength(6);
  });

  it("the program's limits hold for both", async () => {
    const sleeper = "import time\ndef f(x): time.sleep(x)\ndef g(x): return len(bytearray(b'x' * (x << 20)))";
    const limits = { time_ms: 300, memory_mib: 64 };
    const program = tested(
      "p",
      sleeper,
      [
        "f(100)",
        "import time\nf(0)\ntime.sleep(100)",
        "g(200)",
        "import time\ng(1)\nx = b'x' * (200 << 20)\ntime.sleep(0.2)",
      ],
      limits,
    );
    const { lines } = await supervisor.execute(supervisor.chunk([program]));
    expect(endsOf(lines).map(({ status }) => status)).toEqual([
      "time_limit",
      "time_limit",
      "memory_limit",
      "memory_limit",
    ]);
  });

  it("a program that is no Python is told once", async () => {
    const { lines } = await supervisor.execute(
      supervisor.chunk([tested("p", "def f(:", ["f()", "f()", "f()"])]),
    );
    expect(lines.filter(({ type }) => type === "syntax_error")).toHaveLength(1);
  });

  it("a checker never runs while a program does", async () => {
    const now = "import time\nbegan = time.monotonic()\ntime.sleep(0.05)\n";
    const checked = (id: string): Program => ({
      ...makeProgram(id, `${now}print(began, time.monotonic())`, [1, 2, 3].map(describeCase), {
        memory_mib: 64,
      }),
      mode: "checked",
      checker: `${now}import sys\nprint(1)\nprint(began, time.monotonic(), file=sys.stderr)`,
    });
    const answers = await Promise.all(
      ["a", "b"].map((id) => supervisor.execute(supervisor.chunk([checked(id), checked(`${id}2`)]))),
    );
    const ends = answers.flatMap(({ lines }) => endsOf(lines));
    expect(ends.map(({ status, result }) => [status, result])).toEqual(ends.map(() => ["exited", "right"]));
    expect(ends).toHaveLength(12);
    const spans = (text = "") => text.trim().split(" ").map(Number) as [number, number];
    for (const { stderr_tail } of ends) {
      const [began, ended] = spans(stderr_tail);
      expect(ended - began).toBeGreaterThan(0.04);
      const beside = ends.filter(({ stdout }) => spans(stdout)[0] < ended && spans(stdout)[1] > began);
      expect(beside).toEqual([]);
    }
  });

  it("nothing is left of either when the caller goes away", async () => {
    const program = tested("p", "import time\ndef f(x): time.sleep(100)", [
      "f(1)",
      "import time; time.sleep(100)",
    ]);
    const exchange = openChunk(
      supervisor,
      supervisor.chunk([{ ...program, limits: { ...program.limits, time_ms: 60_000 } }]),
    );
    exchange.answer.catch(() => {});
    await exchange.until(({ type }) => type === "started");
    exchange.abort();
    await supervisor.becomeIdle();
  });
});
