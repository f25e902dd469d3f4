/** E2B's API fails while a batch needs it. */
import { describe, expect, it } from "vitest";
import { callEndpoint } from "../../functions/local/rewards-client.ts";
import { countInjected, type FaultRow, readSlots, testRows, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome, type Outcome } from "./known-batch.ts";
import type { Fault } from "./proxy/fault.ts";
import type { Match, Rule } from "./proxy/rules.ts";

// Short enough to be renewed by every sweep.
const behind = useFaultyStack({ poolTimes: { ttlMs: 350_000 } });

const creation: Match = { method: "POST", url: "/v2/sandboxes" };
const listing: Match = { method: "GET", url: "/v2/sandboxes" };
const renewal: Match = { method: "POST", url: /\/timeout$/ };
const question: Match = { method: "GET", url: /^\/sandboxes\// };

const control = (match: Match, fault: Fault): Rule => ({ path: "control", match, fault });
const status = (code: number, more: object = {}): Fault => ({ kind: "answer", status: code, ...more });

describe("a creation", () => {
  /** The first creation suffers the first of these faults, and so on; the one after them succeeds. */
  const inTurn = (name: string, faults: readonly Fault[]): FaultRow => ({
    name,
    emptyPool: true,
    rules: faults.map((fault) => control({ ...creation, nth: 1 }, fault)),
    injected: faults.length,
    outcome: "right",
  });
  const always = (name: string, fault: Fault, outcome: Outcome, deadlineMs = 1_500): FaultRow => ({
    name,
    emptyPool: true,
    rules: [control(creation, fault)],
    ask: { deadlineMs },
    outcome,
  });

  testRows(behind, [
    inTurn("409, 429, 500 and 503, one after the other", [
      status(409),
      status(429, { headers: { "retry-after": "1" } }),
      status(500),
      status(503),
    ]),
    inTurn("502, 504 and a reset, one after the other", [
      status(502, { body: "<html>Bad Gateway</html>" }),
      status(504),
      { kind: "reset_before" },
    ]),
    inTurn("done, and its answer lost, cut, empty, no JSON, or told as 500 and as 503", [
      { kind: "reset_after" },
      { kind: "cut", afterBytes: 20 },
      { kind: "rewrite", body: () => "" },
      { kind: "rewrite", body: () => "created!" },
      { kind: "answer_after", status: 500 },
      { kind: "answer_after", status: 503 },
    ]),
    inTurn("never answered, then done and never answered", [{ kind: "hang_before" }, { kind: "hang_after" }]),
    inTurn("landed long after it was given up", [{ kind: "late_request", ms: 4_000 }]),
    inTurn("done twice, the first told", [{ kind: "twice", answered: "first" }]),
    inTurn("done twice, the second told", [{ kind: "twice", answered: "second" }]),
    inTurn("told by a clock that is an hour ahead", [{ kind: "skew", offsetMs: 3_600_000 }]),
    always("429 every time", status(429), { refused: "sandbox_unavailable", says: /throttled.*429/ }),
    always("503 every time", status(503), { refused: "sandbox_unavailable", says: /503/ }),
    always("500 every time", status(500), { refused: "sandbox_unavailable", says: /500/ }),
    always("reset every time", { kind: "reset_before" }, { refused: "sandbox_unavailable" }),
    always("never answered at all", { kind: "hang_before" }, { refused: "sandbox_unavailable" }, 3_500),
    always("429 every time, with a Retry-After of 6 s", status(429, { headers: { "retry-after": "6" } }), {
      refused: "sandbox_unavailable",
      retryAfterS: 6,
    }),
  ]);
});

describe("a worker is not reached for a moment, and", () => {
  const unreached = (times: number): Rule => ({
    path: "supervisor",
    match: { url: "/v1/execute", nth: { from: 1, to: times } },
    fault: status(502),
  });
  testRows(
    behind,
    [400, 401, 403, 409, 429, 500, 502, 503, 504].map((code) => ({
      name: `the question for its sandbox is answered with ${code}: it is reached a moment later`,
      rules: [unreached(2), control(question, status(code))],
      injected: 4,
      outcome: "right",
    })),
  );
  testRows(behind, [
    {
      name: "the question for its sandbox is answered with 404: it is lost, and the retry is right",
      rules: [unreached(1), control({ ...question, nth: 1 }, status(404))],
      injected: 2,
      outcome: "right",
    },
    {
      name: "the question for its sandbox is never answered: it is reached a moment later",
      rules: [unreached(1), control({ ...question, nth: 1 }, { kind: "hang_before" })],
      injected: 2,
      outcome: "right",
    },
  ]);
});

describe("the sweep's", () => {
  const sweep = () => callEndpoint(behind().stack, "POST", "/local/sweep");
  const cases = [400, 401, 403, 404, 409, 429, 500, 502, 503, 504].flatMap((code) => [
    { what: "listing", match: listing, code },
    { what: "renewal", match: renewal, code },
  ]);

  it.each(cases)("$what answered with $code takes no worker away", async ({ match, code }) => {
    if ((await readSlots(behind())).every(({ state }) => state !== "ready"))
      expectOutcome(await askForRewards(behind().stack), "right");
    const before = (await readSlots(behind())).filter(({ state }) => state === "ready");
    const rule = behind().proxy.add(control(match, status(code)));
    expect(before).not.toEqual([]);
    expect(await sweep()).toMatchObject({ faultCount: expect.any(Number) });
    expect(countInjected([rule])).toBeGreaterThanOrEqual(1);
    behind().proxy.clear();
    const after = await readSlots(behind());
    for (const { sk, sandboxId } of before)
      expect(after).toContainEqual(expect.objectContaining({ sk, sandboxId, state: "ready" }));
    expectOutcome(await askForRewards(behind().stack), "right");
  });
});
