/** Time limits under load: waiting for a CPU is not a program's time, and only that isn't. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { allowedCpus, measureBusyShare } from "./host-view.ts";
import { modes, pythonOf } from "./launch.ts";
import type { Line, Program } from "./wire.ts";

const CPUS = allowedCpus().slice(0, 2);
const LIMITS = { time_ms: 600, memory_mib: 32 };
/** Three quarters of the limit. */
const WORK_S = 0.45;

const SLEEP = `import time\ntime.sleep(${WORK_S})`;
const SPIN = `import time\nwhile time.process_time() < ${WORK_S}: pass`;
const SPIN_IN_CHILD = `import os, time\nif os.fork() == 0:\n    while time.process_time() < ${WORK_S}: pass\n    os._exit(0)\nos.wait()`;
const ENDLESS = "while True: pass";
const FORK_BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass";
/** Nobody waits for the dead, so their CPU time is in no account. */
const DYING_HELPERS = `
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(3): os.fork()
while True:
    try: pid = os.fork()
    except OSError: continue
    if pid == 0:
        end = time.process_time() + 0.0015
        while time.process_time() < end: pass
        os._exit(0)
`;
const ASLEEP = "import time\ntime.sleep(60)";

function repeat(id: string, source: string, count: number, memory_mib = LIMITS.memory_mib): Program {
  return makeProgram(id, source, Array(count).fill(""), { ...LIMITS, memory_mib });
}

const isQuiet = (await measureBusyShare(500)) < 0.4;

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  let hogs: ChildProcess[] = [];
  beforeAll(async () => {
    supervisor = await startSupervisor({
      mode,
      arguments: ["--cpus", CPUS.join(","), "--memory-mib", "1024"],
    });
  }, 60_000);
  afterEach(() => {
    for (const hog of hogs.splice(0)) hog.kill("SIGKILL");
  });
  afterAll(() => supervisor.close());

  /** Processes of strangers that never rest, on the supervisor's CPUs, each in a session of its own. */
  function startHogs(count: number): void {
    const source = `import os\nos.sched_setaffinity(0, ${JSON.stringify(CPUS)})\nwhile True: pass`;
    hogs = Array.from({ length: count }, () =>
      spawn(pythonOf("root"), ["-c", source], { detached: true, stdio: "ignore" }),
    );
  }

  /** {program: the statuses of its cases}, and the lines where a test has more to ask. */
  async function run(programs: Program[]): Promise<{ statuses: Record<string, string[]>; ended: Line[] }> {
    const { lines } = await supervisor.execute(supervisor.chunk(programs, { deadline_ms: 100_000 }));
    expect(lines.at(-1)).toMatchObject({ reason: "completed" });
    const ended = lines.filter(({ type }) => type === "ended");
    const statuses: Record<string, string[]> = Object.fromEntries(programs.map(({ id }) => [id, []]));
    for (const { program = "", status = "" } of ended) statuses[program]?.push(status);
    return { statuses, ended };
  }

  const all = (count: number, status: string): string[] => Array(count).fill(status);

  it.runIf(isQuiet)(
    "a crowd of sleepers and spinners just under their limit all end in time",
    {
      timeout: 120_000,
      retry: 2,
    },
    async () => {
      const { statuses } = await run([
        repeat("endless", ENDLESS, 1),
        repeat("sleep", SLEEP, 16),
        repeat("spin", SPIN, 16),
        repeat("asleep", ASLEEP, 1),
      ]);
      expect(statuses).toEqual({
        endless: all(1, "time_limit"),
        sleep: all(16, "exited"),
        spin: all(16, "exited"),
        asleep: all(1, "time_limit"),
      });
    },
  );

  it("strangers on the same CPUs cost nobody his verdict", { timeout: 120_000, retry: 2 }, async () => {
    startHogs(CPUS.length);
    const { statuses, ended } = await run([
      repeat("endless", ENDLESS, 1),
      repeat("sleep", SLEEP, 6),
      repeat("spin", SPIN, 6),
      repeat("spin in a child", SPIN_IN_CHILD, 4),
      repeat("asleep", ASLEEP, 2),
    ]);
    expect(statuses.sleep).toEqual(all(6, "exited"));
    expect(statuses.asleep).toEqual(all(2, "time_limit"));
    // Where still others are busy, one may be starved; judged by a wall clock it must not be.
    expect(statuses.endless).not.toContain("exited");
    expect([...(statuses.spin ?? []), ...(statuses["spin in a child"] ?? [])]).not.toContain("time_limit");
    const late = ended.filter(({ status, wall_ms = 0 }) => status === "exited" && wall_ms > LIMITS.time_ms);
    expect(late.length, "programs that ended well though they took longer than their limit").toBeGreaterThan(
      0,
    );
  });

  it("one that strangers leave less than half a CPU is starved, which says nothing of it; a sleeper is not", async () => {
    // So many that no luck with the host's scheduler leaves one of them time to end.
    startHogs(12 * CPUS.length);
    expect((await run([repeat("spin", SPIN, 2), repeat("asleep", ASLEEP, 1)])).statuses).toEqual({
      spin: all(2, "starved"),
      asleep: all(1, "time_limit"),
    });
  }, 120_000);

  it.runIf(isQuiet).each([
    ["a fork bomb", FORK_BOMB],
    ["helpers that die young", DYING_HELPERS],
  ])(
    "what %s waits for is its own doing, and no starvation",
    { timeout: 60_000, retry: 2 },
    async (id, source) => {
      expect((await run([repeat(id, source, 2, 256)])).statuses).toEqual({ [id]: all(2, "time_limit") });
    },
  );
});
