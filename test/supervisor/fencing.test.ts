/** Whose programs run: tokens, cancellation, deadlines, lost connections, lost zygotes, and room in memory. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { childrenOf, livingOf, processesByName, processTree } from "./host-view.ts";
import { modes } from "./launch.ts";
import { appear, vanish } from "./waiting.ts";
import { cancelToken, type Exchange, type Line, openChunk, type Program, readHealth } from "./wire.ts";

const GONE_MS = 2000;
let names = 0;

/** A program that only waits; the host knows its processes by their name. */
function makeSleeper(inputs = ["", ""]): { name: string; program: Program; running: () => number[] } {
  names += 1;
  const name = `sleeper-${process.pid % 10_000}-${names}`;
  const source = `
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b"${name}", 0, 0, 0)
if os.fork() == 0: os.setsid()
time.sleep(50)
`;
  const program = makeProgram(name, source, inputs, { time_ms: 60_000, memory_mib: 64 });
  return { name, program, running: () => processesByName(name) };
}

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  let slots: number;
  beforeAll(async () => {
    supervisor = await startSupervisor({ mode, arguments: ["--memory-mib", "640"] });
    slots = supervisor.health.slots as number;
  }, 60_000);
  afterAll(() => supervisor.close());

  /** A chunk of sleepers that has begun: one in every slot, each of two processes. */
  async function openSleepers(changes = {}): Promise<{ exchange: Exchange; running: () => number[] }> {
    const { program, running } = makeSleeper(Array(slots + 1).fill(""));
    const exchange = openChunk(supervisor, supervisor.chunk([program], changes));
    await appear(running, 2 * slots, "sleeping processes");
    return { exchange, running };
  }

  function nextToken(): number {
    return supervisor.chunk([]).fencing_token + 1;
  }

  describe("tokens", () => {
    it("a higher one ends all older work before its own begins", async () => {
      const older = await openSleepers();
      const chunk = supervisor.chunk([makeProgram("new", "print(1)")], { fencing_token: nextToken() });
      const newer = openChunk(supervisor, chunk);
      await newer.until(({ type }) => type === "started");
      expect(older.running()).toEqual([]);
      const { lines, cut } = await older.exchange.answer;
      expect(cut).toBe(false);
      expect(lines.at(-1)).toMatchObject({ type: "summary", reason: "superseded", cases: 0 });
      expect((await newer.answer).lines.at(-1)).toMatchObject({ reason: "completed", cases: 1 });
    });

    it("a lower one is refused, and told the present one", async () => {
      const present = nextToken();
      await supervisor.execute(supervisor.chunk([], { fencing_token: present }));
      const late = await supervisor.execute(
        supervisor.chunk([makeProgram("p", "print(1)")], { fencing_token: present - 1 }),
      );
      expect(late).toMatchObject({ status: 409, body: { code: "stale_token", fencing_token: present } });
      expect(await cancelToken(supervisor, present - 1)).toMatchObject({
        status: 409,
        body: { code: "stale_token" },
      });
      expect((await readHealth(supervisor)).body).toMatchObject({ fencing_token: present });
    });

    it("several chunks of one run together", async () => {
      const chunks = ["a", "b", "c"].map((id) =>
        supervisor.chunk([makeProgram(id, "print(input())", ["1", "2", "3"])]),
      );
      const answers = await Promise.all(chunks.map((chunk) => supervisor.execute(chunk)));
      for (const [index, { lines }] of answers.entries()) {
        expect(lines.at(-1)).toMatchObject({ reason: "completed", cases: 3 });
        expect(new Set(lines.slice(0, -1).map((line) => line.program))).toEqual(new Set(["abc"[index]]));
      }
    });

    it("a chunk seen before is refused, while it runs and after", async () => {
      const { exchange } = await openSleepers({ chunk_id: "once" });
      const again = supervisor.chunk([makeProgram("p", "print(1)")], { chunk_id: "once" });
      expect(await supervisor.execute(again)).toMatchObject({ status: 409, body: { code: "chunk_seen" } });
      exchange.abort();
      await supervisor.becomeIdle();
      expect(await supervisor.execute(again)).toMatchObject({ status: 409, body: { code: "chunk_seen" } });
    });
  });

  describe("an end before the end", () => {
    it("cancelling answers when nothing runs any more", async () => {
      const { exchange, running } = await openSleepers();
      const answer = await cancelToken(supervisor, nextToken() - 1);
      expect(running()).toEqual([]);
      expect(answer).toMatchObject({ status: 200, body: { stopped: 1 } });
      expect((await exchange.answer).lines.at(-1)).toMatchObject({
        type: "summary",
        reason: "cancelled",
        cases: 0,
      });
    });

    it("cancelling raises the fence", async () => {
      const { exchange, running } = await openSleepers();
      const token = nextToken();
      expect(await cancelToken(supervisor, token)).toMatchObject({ status: 200, body: { stopped: 1 } });
      expect(running()).toEqual([]);
      expect((await exchange.answer).lines.at(-1)).toMatchObject({ type: "summary" });
      expect(await supervisor.execute(supervisor.chunk([]))).toMatchObject({ status: 409 });
      expect((await supervisor.execute(supervisor.chunk([], { fencing_token: token }))).status).toBe(200);
    });

    it("cancelling nothing is no error", async () => {
      expect(await cancelToken(supervisor, nextToken() - 1)).toMatchObject({
        status: 200,
        body: { stopped: 0 },
      });
    });

    it("a closed connection stops its programs and nobody else's", async () => {
      const lost = await openSleepers();
      const kept = openChunk(
        supervisor,
        supervisor.chunk([makeProgram("kept", "print(input())", ["1", "2", "3"])]),
      );
      lost.exchange.abort();
      await vanish(lost.running, "programs of a closed connection", GONE_MS);
      expect((await kept.answer).lines.at(-1)).toMatchObject({ reason: "completed", cases: 3 });
    });

    it("a deadline stops what is left and says so", async () => {
      const { program, running } = makeSleeper(["", "", "", ""]);
      const began = performance.now();
      const programs = [makeProgram("quick", "print(1)"), program];
      const { lines } = await supervisor.execute(supervisor.chunk(programs, { deadline_ms: 700 }));
      expect(performance.now() - began).toBeLessThan(2500);
      expect(lines.at(-1)).toMatchObject({ type: "summary", reason: "deadline", cases: 1 });
      expect(lines.filter(({ type }) => type === "ended")).toMatchObject([{ program: "quick" }]);
      expect(running()).toEqual([]);
    });
  });

  it("cases run together only while the sum of their memory fits", async () => {
    const source = "import time; time.sleep(0.1)";
    const makeAll = (memory_mib: number) => makeProgram("p", source, ["", "", "", ""], { memory_mib });
    expect(await greatestOverlap([makeAll(200)])).toBe(Math.min(slots, 2));
    expect(await greatestOverlap([makeAll(300)])).toBe(1);
    expect(await greatestOverlap([makeProgram("big", source, [""], { memory_mib: 400 }), makeAll(200)])).toBe(
      Math.min(slots, 2),
    );
  });

  async function greatestOverlap(programs: Program[]): Promise<number> {
    const { lines } = await supervisor.execute(supervisor.chunk(programs));
    expect(lines.filter(({ type }) => type === "ended").every(({ status }) => status === "exited")).toBe(
      true,
    );
    let running = 0;
    let most = 0;
    for (const { type } of lines) {
      running += { started: 1, ended: -1 }[type as string] ?? 0;
      most = Math.max(most, running);
    }
    return most;
  }

  it("all zygotes killed at once cost no case, and each case is told of once", async () => {
    const program = makeProgram(
      "napper",
      "import time\ntime.sleep(0.4)\nprint(1)",
      Array(3 * slots).fill(""),
    );
    const exchange = openChunk(supervisor, supervisor.chunk([program]));
    await exchange.until(({ type }) => type === "started");
    for (const zygote of childrenOf(supervisor.pid)) process.kill(zygote, "SIGKILL");
    const { lines, cut } = await exchange.answer;
    expect(cut).toBe(false);
    expect(lines.at(-1)).toMatchObject({ reason: "completed", cases: 3 * slots });
    const told = lines.filter(({ type }) => type === "started").map((line) => line.case);
    expect([...told].sort()).toEqual([...new Set(told)].sort());
    expect(lines.filter(({ status }) => status === "exited").length).toBe(3 * slots);
  });

  it("a zygote that is killed costs no case", async () => {
    const inputs = Array.from({ length: 8 }, (_, n) => String(n));
    const program = makeProgram("p", "import time; time.sleep(0.3); print(input())", inputs, {
      memory_mib: 64,
    });
    const exchange = openChunk(supervisor, supervisor.chunk([program]));
    await exchange.until(({ type }) => type === "started");
    const [zygote] = childrenOf(supervisor.pid);
    process.kill(zygote as number, "SIGKILL");
    const { lines } = await exchange.answer;
    const outputs = (line: Line) => [line.case, line.status, line.stdout];
    const expected = inputs.map((input, index) => [index, "exited", `${input}\n`]);
    expect(
      lines
        .filter(({ type }) => type === "ended")
        .map(outputs)
        .sort(),
    ).toEqual(expected);
    expect(childrenOf(supervisor.pid)).not.toContain(zygote);
    await supervisor.becomeIdle();
  }, 20_000);
});

describe.each(modes)("killed as %s", (mode) => {
  it("a supervisor that is killed takes everything with it", async () => {
    const supervisor = await startSupervisor({ mode });
    const { program, running } = makeSleeper();
    const exchange = openChunk(supervisor, supervisor.chunk([program]));
    await appear(running, 2 * Math.min(2, supervisor.health.slots as number), "sleeping processes");
    const tree = processTree(supervisor.pid);
    process.kill(supervisor.pid, "SIGKILL");
    await expect(exchange.answer.then(({ cut }) => cut)).resolves.toBe(true);
    await vanish(() => livingOf(tree), "processes", GONE_MS);
    expect(running()).toEqual([]);
    await supervisor.close("SIGKILL");
  }, 60_000);
});
