/**
 * What honest programs find and how they are judged. All programs of a mode run in one chunk, as in a real batch; each
 * test then reads the lines of its own.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { concurrency } from "./honest/concurrency.ts";
import { endings } from "./honest/endings.ts";
import { limits } from "./honest/limits.ts";
import type { Row } from "./honest/row.ts";
import { streams } from "./honest/streams.ts";
import { surroundings } from "./honest/surroundings.ts";
import { accepted, rejected } from "./honest/syntax.ts";
import { isBusyWithOthers } from "./host-view.ts";
import { modes } from "./launch.ts";
import type { Answer, Line, Program } from "./wire.ts";

const groups: [string, Row[]][] = [
  ["what a program finds", surroundings],
  ["streams", streams],
  ["processes, threads and signals", concurrency],
  ["endings", endings],
  ["limits", limits],
  ["odd sources that are programs", accepted],
];

/** Exit code 0, unless the row names another end. */
function wholeEnd(ends: Row["ends"]): object {
  return ends?.status ? ends : { status: "exited", exit_code: 0, ...ends };
}

const programs: Program[] = [
  ...groups.flatMap(([group, rows]) =>
    rows.map((row) => makeProgram(`${group}: ${row.name}`, row.source, row.inputs, row.limits)),
  ),
  ...rejected.map((row) => makeProgram(`rejected: ${row.name}`, row.source, ["", "1", "2"])),
];

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  let answer: Answer;
  const linesOf = (id: string, type: Line["type"]): Line[] =>
    answer.lines
      .filter((line) => line.program === id && line.type === type)
      .sort((a, b) => (a.case ?? 0) - (b.case ?? 0));

  beforeAll(async () => {
    supervisor = await startSupervisor({ mode, arguments: ["--memory-mib", "1024"] });
    answer = await supervisor.execute(supervisor.chunk(programs, { deadline_ms: 120_000 }));
  }, 120_000);

  afterAll(() => supervisor.close());

  it("ends the chunk whole, without a fault", () => {
    expect(answer).toMatchObject({ status: 200, cut: false });
    expect(answer.lines.at(-1)).toMatchObject({ type: "summary", reason: "completed" });
    const faults = isBusyWithOthers() ? ["isolation_failed"] : ["isolation_failed", "starved"];
    expect(answer.lines.filter(({ status = "" }) => faults.includes(status))).toEqual([]);
    expect(programs.length).toBe(new Set(programs.map(({ id }) => id)).size);
  });

  it("leaves no process behind", () => supervisor.becomeIdle());

  describe.each(groups)("%s", (group, rows) => {
    it.each(rows)("$name", (row) => {
      const lines = linesOf(`${group}: ${row.name}`, "ended");
      expect(lines.map((line) => line.case)).toEqual((row.inputs ?? [""]).map((_, index) => index));
      if (row.ends?.status === "time_limit" && lines[0]?.status === "starved" && isBusyWithOthers()) return;
      for (const line of lines) {
        if (row.ends !== null) expect(line).toMatchObject(wholeEnd(row.ends));
        if (line.status !== "exited") expect(line).not.toHaveProperty("exit_code");
        if (row.stderr) expect(line.stderr_tail).toMatch(row.stderr);
      }
      row.check?.(lines);
    });
  });

  it.each(rejected)("sources that are none: $name", ({ name, detail }) => {
    const id = `rejected: ${name}`;
    expect(linesOf(id, "syntax_error").map((line) => line.detail)).toEqual([expect.stringMatching(detail)]);
    expect(linesOf(id, "ended")).toEqual([]);
  });
});
