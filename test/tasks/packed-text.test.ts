import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { createUnpacker, looksPacked } from "../../functions/tasks/packed-text.ts";
import { readPickledText } from "../../functions/tasks/pickled-text.ts";
import { createTestApp, post, readProblem } from "../api/test-app.ts";
import { measureCpuUs } from "../grading/cpu-time.ts";

interface Pickle {
  readonly name: string;
  readonly bytes: string;
  readonly text: string | null;
}

const folder = mkdtempSync(join(tmpdir(), "pickles-"));
/** What unpickling the bad ones would make. */
const trace = join(folder, "unpickled");
afterAll(() => rmSync(folder, { recursive: true }));

const pickles: readonly Pickle[] = execFileSync("python3", [`${import.meta.dirname}/pickles.py`, trace], {
  encoding: "utf8",
})
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));

function pickleOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([Buffer.from([0x80, 2, 0x58]), length, bytes, Buffer.from([0x71, 0, 0x2e])]);
}

function pack(bytes: Buffer): string {
  return deflateSync(bytes).toString("base64");
}

describe("a pickle that Python made", () => {
  it.each(pickles.filter(({ text }) => text !== null).map((pickle) => [pickle.name, pickle] as const))(
    "is read when it is one text: %s",
    (_name, { bytes, text }) => {
      expect(readPickledText(Buffer.from(bytes, "base64"))).toEqual({ kind: "text", text });
    },
  );

  it.each(pickles.filter(({ text }) => text === null).map((pickle) => [pickle.name, pickle] as const))(
    "is refused when it is anything else: %s",
    (_name, { bytes }) => {
      expect(readPickledText(Buffer.from(bytes, "base64")).kind).toBe("refused");
    },
  );

  it("is never run", async () => {
    for (const { name, bytes } of pickles.filter(({ name }) => /call of|list with one/.test(name))) {
      const tests = pack(Buffer.from(bytes, "base64"));
      const answer = await post(createTestApp(), { samples: [{ task: { tests }, completion: "x" }] });
      expect(answer.status, name).toBe(422);
      expect((await readProblem(answer)).errors[0]?.detail).toMatch(/it is (a|no) pickle of /);
    }
    expect(existsSync(trace)).toBe(false);
  });
});

function applyChanges(
  seed: Buffer,
  changes: readonly { at: number; byte: number; insert: boolean }[],
): Buffer {
  const bytes = [...seed];
  for (const { at, byte, insert } of changes) bytes.splice(at % (bytes.length + 1), insert ? 0 : 1, byte);
  return Buffer.from(bytes);
}

describe("any bytes", () => {
  it("are one text or are refused, and never make reading throw", () => {
    const seeds = pickles
      .map(({ bytes }) => Buffer.from(bytes, "base64"))
      .filter(({ length }) => length < 400);
    const change = fc.record({ at: fc.nat(400), byte: fc.nat(255), insert: fc.boolean() });
    const anyBytes = fc
      .tuple(fc.constantFrom(...seeds), fc.array(change, { maxLength: 3 }))
      .map(([seed, changes]) => applyChanges(seed, changes));
    let texts = 0;
    fc.assert(
      fc.property(anyBytes, (bytes) => {
        if (readPickledText(bytes).kind === "text") texts += 1;
      }),
      { numRuns: 20_000, seed: 71 },
    );
    expect(texts, "some are a text").toBeGreaterThan(0);
  });

  it("take little time, however many", () => {
    const frames = Buffer.concat([
      Buffer.from([0x80, 4]),
      Buffer.alloc(9 * 200_000, Buffer.from([0x95, 0, 0, 0, 0, 0, 0, 0, 0])),
    ]);
    const memos = Buffer.concat([pickleOf("[]").subarray(0, -1), Buffer.alloc(2_000_000, 0x94)]);
    for (const bytes of [frames, memos, pickleOf("x".repeat(2_000_000))]) {
      expect(measureCpuUs(() => readPickledText(bytes), bytes.length / 5, 4)).toBeLessThanOrEqual(
        bytes.length / 5,
      );
    }
  });
});

describe("room for what is unpacked", () => {
  const text = `["${"x".repeat(1_000)}"]`;

  it("is that of one request together", () => {
    const unpack = createUnpacker(2_500);
    expect(unpack(pack(pickleOf(`${text} `)))).toMatchObject({ kind: "text" });
    expect(unpack(pack(pickleOf(text)))).toMatchObject({ kind: "text" });
    expect(unpack(pack(pickleOf(`${text}  `)))).toEqual({
      kind: "refused",
      detail: expect.stringContaining("more than is left of the 2500 bytes"),
    });
  });

  it("is used up by broken payloads too", () => {
    const unpack = createUnpacker(100_000);
    const broken = (index: number) => `${pack(pickleOf(text + index)).slice(0, -12)}AAAAAAAAAAAA`;
    for (let index = 0; index < 20; index += 1) expect(unpack(broken(index)).kind).toBe("refused");
    expect(unpack(pack(pickleOf(text)))).toMatchObject({
      detail: expect.stringContaining("more than is left"),
    });
  });

  it("is used once by samples that all bring the same task", async () => {
    const cases = Array.from({ length: 900 }, (_, index) => ({
      input: "x".repeat(30_000),
      output: `${index}`,
    }));
    const task = { tests: pack(pickleOf(JSON.stringify(cases))) };
    const samples = Array.from({ length: 100 }, () => ({ task, completion: "```\nwrong\n```" }));
    const before = process.cpuUsage();
    const answer = await post(createTestApp(), { samples, options: { detail: "rewards" } });
    const { user, system } = process.cpuUsage(before);
    expect(answer.status).toBe(200);
    expect((user + system) / 1e6, "CPU seconds for 27 MB that are unpacked once").toBeLessThan(10);
  });

  it("bounds the time and memory that bombs take", async () => {
    const bomb = deflateSync(Buffer.alloc(256 * 1024 * 1024)).toString("base64");
    const samples = Array.from({ length: 12 }, (_, index) => ({
      task: { tests: `${"A".repeat(4 * index)}${bomb}` },
      completion: "",
    }));
    samples[0] = { task: { tests: bomb }, completion: "" };
    const before = process.memoryUsage().rss;
    const startedUs = process.cpuUsage();
    const answer = await post(createTestApp(), { samples });
    const spent = process.cpuUsage(startedUs);
    expect(answer.status).toBe(422);
    expect((await readProblem(answer)).errors).toHaveLength(12);
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
    expect((spent.user + spent.system) / 1e6, "CPU seconds").toBeLessThan(3);
  });
});

describe("what looks packed", () => {
  it.each([
    ["base64", "eJxrYJlaxQABPWXR1Uq=", true],
    ["base64 in lines", "eJxrYJlaxQAB\nPWXR1UqZeQWl\n", true],
    ["a word", "hello", false],
    ["JSON", '{"inputs": []}', false],
    ["base64 for addresses", "eJxrYJlaxQABPWXR1U-_", false],
    ["base64 with blanks in it", "eJxrYJla xQABPWXR1Uqa", false],
    ["padding in the middle", "eJxrYJ==laxQABPWXR1U", false],
  ])("is base64 and nothing else: %s", (_name, text, expected) => {
    expect(looksPacked(text)).toBe(expected);
  });

  it("is found out in linear time", () => {
    for (const text of [
      `${"A".repeat(1_000_000)}!`,
      `${"=".repeat(1_000_000)}`,
      `${"\n".repeat(1_000_000)}!`,
    ]) {
      expect(measureCpuUs(() => looksPacked(text), 100_000, 4)).toBeLessThanOrEqual(100_000);
    }
  });
});
