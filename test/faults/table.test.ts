/** The table fails while a batch needs it. */
import { describe, expect, it } from "vitest";
import { countInjected, type FaultRow, testRows, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome, type Outcome } from "./known-batch.ts";
import type { Fault } from "./proxy/fault.ts";
import type { Match, Rule } from "./proxy/rules.ts";

/** Leases that nobody could give back are soon over. */
const behind = useFaultyStack({ poolTimes: { leaseMs: 4_000, extendEveryMs: 1_500, graceMs: 500 } });

const table = (match: Match, fault: Fault): Rule => ({ path: "table", match, fault });
const error = (type: string, status = 400, message = "no"): Fault => ({
  kind: "answer",
  status,
  body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }),
});
const throttled = error("ProvisionedThroughputExceededException");
const failed = error("InternalServerError", 500);

let keys = 0;
/** A key makes the batch ask the table at its beginning and for each worker. */
const keyed = () => ({ key: `k${keys++}` });

const passing: readonly (readonly [string, Fault])[] = [
  ["throttled", throttled],
  ["answered with 500", failed],
  ["answered with 503", error("ServiceUnavailable", 503)],
  ["reset before it arrived", { kind: "reset_before" }],
  ["done, and its answer lost", { kind: "reset_after" }],
  ["done, and told as 500", { kind: "answer_after", status: 500 }],
  ["never answered", { kind: "hang_before" }],
  ["done and never answered", { kind: "hang_after" }],
  ["answered with what is no JSON", { kind: "rewrite", body: () => "<html>" }],
  ["cut in its answer", { kind: "cut", afterBytes: 1 }],
];

describe("once, in a batch, is each operation", () => {
  testRows(
    behind,
    passing.map(([name, fault]): FaultRow => {
      const once = (operation: string) => table({ operation, nth: 1 }, fault);
      return {
        name,
        rules: [once("UpdateItem"), once("GetItem")],
        ask: keyed(),
        injected: 2,
        outcome: "right",
      };
    }),
  );
});

describe("for longer than the client tries, in a pool without workers, every operation is", () => {
  testRows(
    behind,
    [passing[0], passing[3]]
      .flatMap((row) => (row ? [row] : []))
      .map(
        ([name, fault]): FaultRow => ({
          name,
          emptyPool: true,
          rules: [table({ nth: { from: 1, to: 7 } }, fault)],
          injected: 7,
          ask: keyed(),
          outcome: "right",
        }),
      ),
  );
  testRows(behind, [
    {
      name: "done twice",
      emptyPool: true,
      rules: [table({ operation: ["UpdateItem", "GetItem", "Query"] }, { kind: "twice", answered: "first" })],
      injected: 5,
      outcome: "right",
    },
    {
      name: "slow",
      emptyPool: true,
      rules: [table({}, { kind: "delay", ms: 200 })],
      injected: 5,
      outcome: "right",
    },
  ]);
});

describe("to the end, every operation is", () => {
  const ever = (name: string, fault: Fault, outcome: Outcome, ask = {}): FaultRow => ({
    name,
    rules: [table({}, fault)],
    ask: { deadlineMs: 2_500, ...ask },
    outcome,
  });
  const unavailable = { refused: "store_unavailable", retryAfterS: 2 };
  testRows(behind, [
    ...passing.slice(0, 4).map(([name, fault]) => ever(name, fault, unavailable)),
    ever("never answered", { kind: "hang_before" }, unavailable),
    ever("throttled, for a batch with a key", throttled, unavailable, keyed()),
    ever("never answered, for a batch with a key", { kind: "hang_before" }, unavailable, keyed()),
    ever("refused, for there is no such table", error("ResourceNotFoundException"), {
      refused: "misconfigured",
      says: /code-rewards-local.*does not exist/,
    }),
    ever("refused, for the role may not", error("AccessDeniedException"), {
      refused: "misconfigured",
      says: /access.*denied/,
    }),
    ever("refused, for the credentials are wrong", error("UnrecognizedClientException"), {
      refused: "misconfigured",
      says: /credentials.*not valid/,
    }),
    ever(
      "refused, for the table has other keys",
      error("ValidationException", 400, "key element does not match the schema"),
      {
        refused: "misconfigured",
        says: /other keys/,
      },
    ),
    ever("refused as nonsense of ours", error("ValidationException"), { refused: "internal", status: 500 }),
  ]);
});

describe("from the moment on in which the first program runs, every operation is", () => {
  const fromThenOn = (fault: Fault): Rule => ({
    path: "table",
    match: {
      where: () => behind().proxy.requests.some(({ url, answer }) => url === "/v1/execute" && answer !== ""),
    },
    fault,
  });
  const rows: readonly (readonly [string, Fault])[] = [
    ["throttled", throttled],
    ["never answered", { kind: "hang_before" }],
    ["refused as nonsense of ours", error("ValidationException")],
    ["refused, for there is no such table", error("ResourceNotFoundException")],
  ];

  it.each(rows)("%s: the work goes on, and its rewards are right", async (_, fault) => {
    expectOutcome(await askForRewards(behind().stack), "right");
    behind().proxy.requests.length = 0;
    const rule = behind().proxy.add(fromThenOn(fault));
    expectOutcome(await askForRewards(behind().stack), "right");
    expect(countInjected([rule])).toBeGreaterThanOrEqual(1);
  });
});
