/** The service inside a sandbox fails while a worker is brought up, and so does the worker itself. */
import { describe } from "vitest";
import { type FaultRow, testRows, useFaultyStack } from "./fault-table.ts";
import { type Fault, type ServicePath, supervisorSays } from "./proxy/fault.ts";
import type { Match, Rule } from "./proxy/rules.ts";

const behind = useFaultyStack();

const files: Match = { url: /^\/files/ };
const start: Match = { url: "/process.Process/Start" };
const health: Match = { url: "/v1/health" };

const once = (path: ServicePath, match: Match, fault: Fault): Rule => ({
  path,
  match: { ...match, nth: 1 },
  fault,
});
const status = (code: number): Fault => ({ kind: "answer", status: code });

/** The same faults, one after the other, for each step of a worker's start. */
const eachStep = (name: string, ...faults: Fault[]): FaultRow => ({
  name,
  emptyPool: true,
  rules: faults.flatMap((fault) => [
    once("envd", files, fault),
    once("envd", start, fault),
    once("supervisor", health, fault),
  ]),
  injected: 3 * faults.length,
  outcome: "right",
});

describe("each step of a worker's start meets", () => {
  testRows(behind, [
    eachStep("400 and 401", status(400), status(401)),
    eachStep("403 and 404", status(403), status(404)),
    eachStep("409 and 429", status(409), status(429)),
    eachStep("500 and 502", status(500), status(502)),
    eachStep("503 and 504", status(503), status(504)),
    eachStep("a reset before and one after it is done", { kind: "reset_before" }, { kind: "reset_after" }),
    eachStep("silence", { kind: "hang_before" }),
  ]);
});

describe("a worker's start", () => {
  const always = (match: Match, path: ServicePath, fault: Rule["fault"]): Rule => ({
    path,
    match,
    fault,
  });
  testRows(behind, [
    {
      name: "whose files are refused every time is told, and its sandboxes are killed",
      emptyPool: true,
      rules: [always(files, "envd", status(503))],
      ask: { deadlineMs: 3_000 },
      outcome: { refused: "sandbox_unavailable", says: /write the supervisor's files.*3 tries/ },
    },
    {
      name: "whose command finds no sandbox, though there is one, is told",
      emptyPool: true,
      rules: [always(start, "envd", status(429))],
      ask: { deadlineMs: 3_000 },
      outcome: { refused: "sandbox_unavailable", says: /start the supervisor.*3 tries/ },
    },
    {
      name: "that can't isolate programs is refused after three, and says what to do",
      emptyPool: true,
      rules: [
        always(
          health,
          "supervisor",
          supervisorSays(503, {
            state: "refused",
            failed: [{ property: "seccomp", detail: "errno 22", remedy: "Use Linux 5.12." }],
          }),
        ),
      ],
      injected: 3,
      outcome: { refused: "isolation_failed", says: /seccomp: errno 22. To do: Use Linux 5.12./ },
    },
  ]);
});
