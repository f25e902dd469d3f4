/** The way to a worker fails while it works, or the worker says what no worker says. */
import { describe, expect, it } from "vitest";
import { type FaultRow, readSlots, testRows, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome, type Outcome } from "./known-batch.ts";
import type { Fault } from "./proxy/fault.ts";
import type { Rule } from "./proxy/rules.ts";

const behind = useFaultyStack();

const execution = { url: "/v1/execute" };
const times = (count: number, fault: Fault): Rule => ({
  path: "supervisor",
  match: { ...execution, nth: { from: 1, to: count } },
  fault,
});
const status = (code: number, more: object = {}): Fault => ({ kind: "answer", status: code, ...more });
const once = (name: string, fault: Fault, outcome: Outcome = "right"): FaultRow => ({
  name,
  rules: [times(1, fault)],
  outcome,
});
const ever = (name: string, fault: Fault, outcome: Outcome, deadlineMs = 20_000): FaultRow => ({
  name,
  rules: [times(Number.POSITIVE_INFINITY, fault)],
  ask: { deadlineMs },
  outcome,
});

describe("a chunk is answered once with", () => {
  testRows(
    behind,
    [400, 401, 403, 404, 409, 429, 500, 502, 503, 504].map((code) => once(String(code), status(code))),
  );
});

describe("a chunk's connection", () => {
  testRows(behind, [
    once("is reset before it arrived", { kind: "reset_before" }),
    {
      ...once("is reset twice before it arrived", { kind: "reset_before" }),
      rules: [times(2, { kind: "reset_before" })],
    },
    once("is reset after it arrived", { kind: "reset_after" }),
    ...[0, 150].map((afterBytes) =>
      once(`is cut after ${afterBytes} bytes of its answer`, { kind: "cut", afterBytes }),
    ),
    once("drips", { kind: "drip", bytes: 64, everyMs: 20 }),
    once("delivers it late", { kind: "delay", ms: 1_500 }),
    once("delivers it twice, and the first answer", { kind: "twice", answered: "first" }),
    once("delivers it twice, and the second answer", { kind: "twice", answered: "second" }),
  ]);
});

/** Changes the lines of an answer. */
const relined = (change: (lines: string[]) => string[]): Fault => ({
  kind: "rewrite",
  body: (answer) =>
    change(answer.trimEnd().split("\n"))
      .map((line) => `${line}\n`)
      .join(""),
});
const edited = (from: RegExp, to: string): Fault => ({
  kind: "rewrite",
  body: (answer) => answer.replace(from, to),
});

const nonsense: readonly (readonly [string, Fault])[] = [
  ["no JSON", { kind: "rewrite", body: () => "<html>hello</html>\n" }],
  ["nothing", { kind: "rewrite", body: () => "" }],
  ["no summary", relined((lines) => lines.slice(0, -1))],
  ["every line twice", relined((lines) => lines.flatMap((line) => [line, line]))],
  ["a program that it was not given", edited(/"program":"p0"/g, '"program":"p99"')],
  ["an end without a start", relined((lines) => lines.filter((line) => !line.includes('"started"')))],
  [
    "that it could not isolate a case",
    edited(/"status":"exited","exit_code":0/, '"status":"isolation_failed","detail":"why"'),
  ],
  ["a deadline long before the deadline", edited(/"reason":"completed"/, '"reason":"deadline"')],
  [
    "a summary before all cases have ended",
    relined((lines) => lines.filter((line) => !line.includes('"ended"'))),
  ],
  [
    "a chunk that another holder took over",
    relined((lines) => lines.slice(-1).map((line) => line.replace('"completed"', '"superseded"'))),
  ],
  // Nothing is wrong with its worker.
  ["that a case got no CPU", edited(/"status":"exited","exit_code":0/, '"status":"starved","detail":"why"')],
];

/** What E2B may say when the worker is to be killed for it. */
const killAnswers = [400, 401, 403, 404, 409, 429, 500, 502, 503, 504];

describe("a worker tells once", () => {
  testRows(
    behind,
    nonsense.map(([name, fault], index): FaultRow => {
      const code = killAnswers[index];
      if (code === undefined) return once(name, fault);
      const kill: Rule = { path: "control", match: { method: "DELETE" }, fault: status(code) };
      const rules = [times(1, fault), kill];
      return { name: `${name}, and can't be killed at once (${code})`, rules, injected: 2, outcome: "right" };
    }),
  );
});

describe("every worker", () => {
  testRows(behind, [
    ever(
      "tells no JSON: there are no rewards",
      { kind: "rewrite", body: () => "{\n" },
      { nulls: "supervisor_protocol" },
    ),
    ever(
      "is cut off before its first line, to the end: nothing was started",
      { kind: "cut", afterBytes: 0 },
      { refused: "sandbox_unavailable", says: /answered too late/ },
      10_000,
    ),
    ever(
      "refuses its token: there are no rewards",
      status(401, { body: '{"code":"unauthorized","detail":"no"}' }),
      { nulls: "supervisor_protocol" },
    ),
    ever(
      "gives a case no CPU: its program has no reward, the others have theirs",
      edited(/"status":"exited","exit_code":0/, '"status":"starved","detail":"why"'),
      { someNulls: "starved" },
    ),
    ever(
      "can't isolate a case: its program has no reward, the others have theirs",
      edited(/"status":"exited","exit_code":0/, '"status":"isolation_failed","detail":"why"'),
      { someNulls: "isolation_failed" },
    ),
    ever(
      "is unreachable (502) to the end: nothing was started",
      status(502),
      { refused: "sandbox_unavailable", says: /answered too late/ },
      10_000,
    ),
    ever(
      "is refused by the proxy (503) to the end: nothing was started",
      status(503),
      { refused: "sandbox_unavailable", says: /answered too late/ },
      2_500,
    ),
    ever(
      "is refused by the proxy (429) to the end: nothing was started",
      status(429),
      { refused: "sandbox_unavailable", says: /answered too late/ },
      2_500,
    ),
  ]);
});

describe("a proxy that lets no large request through", () => {
  it("gets smaller ones; every reward is right, and the worker stays", async () => {
    expectOutcome(await askForRewards(behind().stack), "right");
    const workers = (await readSlots(behind())).map(({ sandboxId }) => sandboxId);
    const rule = behind().proxy.add({
      path: "supervisor",
      match: execution,
      fault: ({ body }) => (body.length > 400 ? status(413, { body: "<html>too large</html>" }) : null),
    });
    const answer = await askForRewards(behind().stack);
    expectOutcome(answer, "right");
    expect(answer.body.usage).toMatchObject({ retries: 0, workers_created: 0 });
    expect(rule.injected.length).toBeGreaterThan(0);
    expect((await readSlots(behind())).map(({ sandboxId }) => sandboxId)).toEqual(workers);
  });
});

describe("a worker that says nothing", () => {
  it("for 15 s is lost, whether its chunk arrived or not, and the retry is right", async () => {
    expectOutcome(await askForRewards(behind().stack), "right");
    const kinds = ["hang_before", "hang_after"] as const;
    let next = 0;
    const rule = behind().proxy.add({
      path: "supervisor",
      match: { ...execution, nth: { from: 1, to: 2 } },
      fault: () => ({ kind: kinds[next++] ?? "hang_before" }),
    });
    const answers = await Promise.all(
      [1, 2].map(() => askForRewards(behind().stack, { deadlineMs: 60_000 })),
    );
    for (const answer of answers) expectOutcome(answer, "right");
    expect(rule.injected.map(({ kind }) => kind).sort()).toEqual(["hang_after", "hang_before"]);
  }, 90_000);
});
