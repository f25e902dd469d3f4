/** The supervisor's HTTP interface: who may ask, what is refused, and the lines of an answer. */
import net from "node:net";
import { totalmem } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { openDescriptors } from "./host-view.ts";
import { brokenCheckers, impossiblePrograms, invalidBodies, REFUSED_CHUNK_ID } from "./invalid-requests.ts";
import { modes } from "./launch.ts";
import { vanish } from "./waiting.ts";
import { cancelToken, type Line, openChunk, readHealth, sendRequest } from "./wire.ts";

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  beforeAll(async () => {
    supervisor = await startSupervisor({ mode, arguments: ["--memory-mib", "512"] });
  }, 60_000);
  afterAll(() => supervisor.close());

  it("says what it is and what it proved", () => {
    expect(supervisor.health).toMatchObject({
      state: "ready",
      mode,
      version: expect.stringMatching(/./),
      instance: expect.stringMatching(/^[\w-]{8}$/),
      python: expect.stringMatching(/^3\.\d+\.\d+/),
      slots: expect.any(Number),
      fencing_token: 0,
    });
    expect(Object.keys(supervisor.health.properties as object).length).toBeGreaterThanOrEqual(30);
  });

  it("does not believe in more memory than there is", async () => {
    const boastful = await startSupervisor({ mode, arguments: ["--memory-mib", "100000000"] });
    try {
      expect(boastful.health.memory_mib).toBeLessThan(totalmem() / 2 ** 20 / 0.85);
    } finally {
      await boastful.close();
    }
  });

  describe("who may ask", () => {
    const routes = [
      ["GET", "/v1/health"],
      ["POST", "/v1/execute"],
      ["POST", "/v1/cancel"],
    ] as const;
    const credentials: [string, (secret: string) => string | undefined][] = [
      ["none", () => undefined],
      ["empty ones", () => ""],
      ["a wrong secret", () => `Bearer ${"0".repeat(48)}`],
      ["the beginning of the secret", (secret) => `Bearer ${secret.slice(0, -1)}`],
      ["more than the secret", (secret) => `Bearer ${secret}0`],
      ["the secret without its scheme", (secret) => secret],
      ["letters beyond ASCII", () => "Bearer \xe9"],
    ];

    it.each(
      routes.flatMap(([method, path]) => credentials.map(([name, make]) => ({ method, path, name, make }))),
    )("nobody with $name at $path", async ({ method, path, make }) => {
      const value = make(supervisor.secret);
      const headers = value === undefined ? {} : { authorization: value };
      const body = method === "POST" ? JSON.stringify(supervisor.chunk([makeProgram("p", "print(1)")])) : "";
      const answer = await sendRequest({ port: supervisor.port }, { method, path, headers, body }).answer;
      expect(answer).toMatchObject({
        status: 401,
        body: { code: "unauthorized", detail: expect.any(String) },
      });
    });
  });

  describe("an answer that is no stream repeats the request's nonce", () => {
    const chunk = () => supervisor.chunk([makeProgram("p", "print(1)")], { chunk_id: "once" });
    const secret = () => supervisor.secret;
    it.each<[string, string, string, () => string, () => string, number]>([
      ["its health", "GET", "/v1/health", secret, () => "", 200],
      ["what it stopped", "POST", "/v1/cancel", secret, () => JSON.stringify(chunk()), 200],
      ["a stranger's refusal", "POST", "/v1/execute", () => "wrong", () => JSON.stringify(chunk()), 401],
      ["a refused chunk", "POST", "/v1/execute", secret, () => "[]", 400],
      ["a stale token", "POST", "/v1/cancel", secret, () => '{"fencing_token":0}', 409],
      ["no route", "GET", "/nowhere", secret, () => "", 404],
    ])("%s", async (_, method, path, bearer, body, status) => {
      await supervisor.execute(supervisor.chunk([]));
      const headers = { authorization: `Bearer ${bearer()}`, "x-request-nonce": "n-1" };
      const { port } = supervisor;
      const answer = await sendRequest({ port }, { method, path, headers, body: body() }).answer;
      expect(answer).toMatchObject({ status, body: { nonce: "n-1" } });
    });

    it("and of a worker that stopped, the token too", async () => {
      const { fencing_token } = supervisor.chunk([]);
      expect((await cancelToken(supervisor, fencing_token)).body).toEqual({ fencing_token, stopped: 0 });
    });
  });

  describe("what is refused", () => {
    it.each(invalidBodies)("%s", async (_, body) => {
      const answer = await sendRequest(supervisor, { method: "POST", path: "/v1/execute", body }).answer;
      expect(answer).toMatchObject({
        status: 400,
        body: { code: "invalid_request", detail: expect.any(String) },
      });
    });

    it("but not the chunk id that a refused request had", async () => {
      const chunk = supervisor.chunk([makeProgram("p", "print(1)")], { chunk_id: REFUSED_CHUNK_ID });
      expect((await supervisor.execute(chunk)).lines.at(-1)).toMatchObject({ reason: "completed", cases: 1 });
    });

    it.each(impossiblePrograms)("%s, of that program alone", async (_, changes) => {
      const impossible = { ...makeProgram("impossible", "print(1)", ["", ""]), ...changes };
      const programs = [makeProgram("a", "print(1)"), impossible, makeProgram("b", "print(2)")];
      const chunk = supervisor.chunk(programs, { checkers: brokenCheckers });
      const { status, lines } = await supervisor.execute(chunk);
      expect(status).toBe(200);
      expect(lines.filter((line) => line.chunk !== chunk.chunk_id)).toEqual([]);
      const ofIt = lines.filter(({ program }) => program === "impossible");
      expect(ofIt).toMatchObject([{ type: "invalid_task", detail: expect.stringMatching(/./) }]);
      const outputs = lines.filter(({ type }) => type === "ended").map(({ stdout }) => stdout);
      expect(outputs.sort()).toEqual(["1\n", "2\n"]);
      expect(lines.at(-1)).toMatchObject({ type: "summary", reason: "completed", cases: 2 });
    });

    it("a chunk of nothing but such programs is completed without a case", async () => {
      const programs = impossiblePrograms.map(([id, changes]) => ({
        ...makeProgram(id, "print(1)"),
        ...changes,
      }));
      const { lines } = await supervisor.execute(supervisor.chunk(programs, { checkers: brokenCheckers }));
      expect(lines.map(({ type }) => type)).toEqual([...programs.map(() => "invalid_task"), "summary"]);
      expect(lines.at(-1)).toMatchObject({ reason: "completed", cases: 0 });
    });

    it.each(["/v1/execute", "/v1/cancel"])(
      "%s, when it is meant for another life of the supervisor",
      async (path) => {
        const body = JSON.stringify(supervisor.chunk([makeProgram("p", "print(1)")]));
        const ask = (instance: string) =>
          sendRequest(supervisor, {
            method: "POST",
            path,
            body,
            headers: { "x-supervisor-instance": instance },
          }).answer;
        expect(await ask("of-before")).toMatchObject({ status: 409, body: { code: "restarted" } });
        expect(await ask(String(supervisor.health.instance))).toMatchObject({ status: 200 });
      },
    );

    it.each([
      ["GET", "/v1/execute"],
      ["POST", "/v1/health"],
      ["GET", "/"],
      ["GET", "/v1/../../etc/passwd"],
    ])("%s %s, which is no route", async (method, path) => {
      expect([404, 405]).toContain((await sendRequest(supervisor, { method, path }).answer).status);
    });

    it.each([
      ["a body announced too large", "Content-Length: 1073741824", /^HTTP\/1\.1 413 /],
      ["a length in words", "Content-Length: much", /^HTTP\/1\.1 400 /],
      ["a length in superscript", "Content-Length: \xb2", /^HTTP\/1\.1 400 /],
      ["a negative length", "Content-Length: -1", /^HTTP\/1\.1 400 /],
      ["a head without end", `X-Long: ${"x".repeat(2 << 20)}`, /^(HTTP\/1\.1 4\d\d |$)/],
    ])("%s", async (_, header, expected) => {
      const head = `POST /v1/execute HTTP/1.1\r\nAuthorization: Bearer ${supervisor.secret}\r\n${header}\r\n\r\n`;
      expect(await talk(supervisor.port, head)).toMatch(expected);
    });

    it.each([
      "",
      "\r\n\r\n",
      "no HTTP at all\r\n\r\n",
      "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
      "GET /v1/health\r\n\r\n",
    ])("%j, which is no request", async (text) => {
      expect(await talk(supervisor.port, text)).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
      expect((await readHealth(supervisor)).status).toBe(200);
    });
  });

  describe("the lines of an answer", () => {
    it("start before they end, end once, and are summed up last", async () => {
      const programs = [
        makeProgram("right", "print(input())", ["1", "2", "3"]),
        makeProgram("wrong", "1 / 0", ["", ""]),
        makeProgram("none", "x = = 1", ["", "", ""]),
        makeProgram("long", "import time; time.sleep(30)", [""], { time_ms: 100 }),
        makeProgram("idle", "print(1)", []),
      ];
      const chunk = supervisor.chunk(programs);
      const { lines, cut } = await supervisor.execute(chunk);
      expect(cut).toBe(false);
      expect(new Set(lines.map((line) => line.chunk))).toEqual(new Set([chunk.chunk_id]));
      const key = (line: Line) => `${line.program} ${line.case}`;
      const ended = lines.filter((line) => line.type === "ended");
      const cases = ["long 0", "right 0", "right 1", "right 2", "wrong 0", "wrong 1"];
      expect(ended.map(key).sort()).toEqual(cases);
      for (const line of ended) {
        const started = lines.filter((other) => other.type === "started" && key(other) === key(line));
        expect(started).toHaveLength(1);
        expect(lines.indexOf(started[0] as Line)).toBeLessThan(lines.indexOf(line));
      }
      expect(lines.filter(({ type }) => type === "syntax_error")).toMatchObject([{ program: "none" }]);
      expect(lines.filter(({ type }) => type === "summary")).toMatchObject([
        { reason: "completed", cases: 6 },
      ]);
      expect(lines.at(-1)?.type).toBe("summary");
    });

    it("tell what a case cost", async () => {
      const source =
        "import time\nx = bytearray(50 << 20)\nwhile time.process_time() < 0.1: pass\ntime.sleep(0.1)";
      const { lines } = await supervisor.execute(supervisor.chunk([makeProgram("p", source)]));
      const line = lines.find(({ type }) => type === "ended");
      expect(line?.wall_ms).toBeGreaterThan(200);
      expect(line?.cpu_ms).toBeGreaterThan(90);
      expect(line?.cpu_ms).toBeLessThan(line?.wall_ms ?? 0);
      expect(line?.peak_rss_kib).toBeGreaterThan(50 << 10);
      expect(line?.peak_rss_kib).toBeLessThan(90 << 10);
    });

    it("tell of no program that it took less time than CPU time", async () => {
      const quick = makeProgram("p", "print(1)", Array(40).fill(""));
      const { lines } = await supervisor.execute(supervisor.chunk([quick]));
      const ended = lines.filter(({ type }) => type === "ended");
      expect(ended).toHaveLength(40);
      // CPU time and the clock are two measures: they may differ by what it takes to read them.
      const impossible = ended.filter(({ wall_ms = 0, cpu_ms = 0 }) => wall_ms < cpu_ms - 0.5);
      expect(impossible.map(({ wall_ms, cpu_ms }) => ({ wall_ms, cpu_ms }))).toEqual([]);
    });

    it("come at once for a chunk without programs", async () => {
      const { lines } = await supervisor.execute(supervisor.chunk([]));
      expect(lines).toMatchObject([{ type: "summary", reason: "completed", cases: 0 }]);
    });

    it("come as their cases end, not at the chunk's end", async () => {
      const programs = [makeProgram("quick", "print(1)"), makeProgram("slow", "import time; time.sleep(1)")];
      const exchange = openChunk(supervisor, supervisor.chunk(programs));
      await exchange.until(({ type, program }) => type === "ended" && program === "quick");
      expect(exchange.lines.filter(({ type, program }) => type === "ended" && program === "slow")).toEqual(
        [],
      );
      expect((await exchange.answer).lines.at(-1)).toMatchObject({ cases: 2 });
    });

    it("beat while nothing else happens", async () => {
      const program = makeProgram("p", "import time; time.sleep(6)", [""], { time_ms: 20_000 });
      const chunk = supervisor.chunk([program]);
      const { lines } = await supervisor.execute(chunk);
      expect(lines.filter((line) => line.chunk !== chunk.chunk_id)).toEqual([]);
      const gaps = lines.slice(1).map((line, index) => line.at_ms - (lines[index]?.at_ms ?? 0));
      expect(lines.filter(({ type }) => type === "beat").length).toBeGreaterThanOrEqual(1);
      expect(Math.max(...gaps)).toBeLessThan(5500);
    }, 20_000);

    it("are all there for a reader who is slow, and who holds up nobody else", async () => {
      const program = makeProgram("big", 'print("x" * 1048000)', Array(40).fill(""), {
        output_bytes: 1_048_576,
      });
      const slow = openSlowly(supervisor, JSON.stringify(supervisor.chunk([program])));
      const quick = await supervisor.execute(
        supervisor.chunk([makeProgram("p", "print(1)", Array(10).fill(""))]),
      );
      expect(quick.lines.at(-1)).toMatchObject({ reason: "completed", cases: 10 });
      expect((await slow.readAll()).match(/"type":"ended"/g)).toHaveLength(40);
    }, 20_000);

    it("are all there for a thousand cases, and no descriptor stays open", async () => {
      await supervisor.becomeIdle();
      const before = openDescriptors(supervisor.pid).length;
      const inputs = Array.from({ length: 100 }, (_, n) => String(n));
      const programs = Array.from({ length: 10 }, (_, n) =>
        makeProgram(`p${n}`, `print(int(input()) + ${n})`, inputs),
      );
      const { lines } = await supervisor.execute(supervisor.chunk(programs));
      const outputs = lines
        .filter(({ type }) => type === "ended")
        .map((line) => [line.program, line.case, line.stdout]);
      const expected = programs.flatMap(({ id }, n) =>
        inputs.map((_, index) => [id, index, `${index + n}\n`]),
      );
      expect(outputs.sort()).toEqual(expected.sort());
      await supervisor.becomeIdle();
      await vanish(() => openDescriptors(supervisor.pid).slice(before), "descriptors");
    }, 60_000);
  });
});

/** Sends bytes and returns all that comes back until the other side closes, or a second after the last. */
function talk(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = net.connect(port, "127.0.0.1", () => socket.write(text, "latin1"));
    socket.setTimeout(1000, () => socket.destroy());
    socket.setEncoding("latin1").on("data", (piece) => {
      answer += piece;
      socket.end();
    });
    socket.on("error", () => {}).on("close", () => resolve(answer));
  });
}

/** A request whose answer is not read until `readAll`. */
function openSlowly(supervisor: Supervisor, body: string): { readAll(): Promise<string> } {
  const socket = net.connect(supervisor.port, "127.0.0.1").setEncoding("latin1").pause();
  const head = `POST /v1/execute HTTP/1.1\r\nAuthorization: Bearer ${supervisor.secret}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  socket.write(head + body);
  return {
    readAll: () =>
      new Promise((resolve) => {
        const pieces: string[] = [];
        socket.on("data", (piece: string) => {
          pieces.push(piece);
          if (piece.endsWith("0\r\n\r\n")) socket.destroy();
        });
        socket.on("close", () => resolve(pieces.join("")));
        socket.resume();
      }),
  };
}
