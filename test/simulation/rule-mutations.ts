/** The protocol's rules, each broken by a change of the product's source. */
import type { Mutation } from "./mutations.ts";

export interface RuleMutation extends Mutation {
  /** What holds no more. */
  readonly without: string;
}

const pool = "functions/pool/";

function inFile(file: string, without: string, from: string, to: string): RuleMutation {
  return { file: `${pool}${file}`, without, from, to };
}

export const ruleMutations: readonly RuleMutation[] = [
  // A lease is short, and its holder extends it for as long as it works.
  inFile(
    "held-lease.ts",
    "a holder extends its lease",
    "let waitMs = ctx.settings.extendEveryMs;",
    "let waitMs = 900_000;",
  ),
  inFile(
    "held-lease.ts",
    "a holder renews a sandbox that nobody else renewed",
    "await renewIfLate(ctx, state.row);",
    "",
  ),
  // A worker changes hands only with a new fence, which its supervisor enforces.
  inFile("slots/acquire.ts", "acquiring raises the fence", '":one": 1', '":one": 0'),
  inFile("slots/hand-over.ts", "handing over raises the fence", '":one": 1', '":one": 0'),
  inFile("slots/take-over.ts", "taking over raises the fence", '":one": 1', '":one": 0'),
  inFile("slots/claim.ts", "claiming raises the fence", " ADD #fence :one", " ADD #fence :zero"),
  inFile(
    "slots/drain.ts",
    "expiring and draining raise the fence",
    '":leaseUntilMs": ctx.clock.nowMs() + ctx.settings.drainLeaseMs,\n    ":one": 1,',
    '":leaseUntilMs": ctx.clock.nowMs() + ctx.settings.drainLeaseMs,\n    ":one": 0,',
  ),
  inFile(
    "slots/drain.ts",
    "abandoning raises the fence",
    '":owner": owner,\n    ":one": 1,\n  };',
    '":owner": owner,\n    ":one": 0,\n  };',
  ),
  // A refusal after a retry is looked into before it is believed.
  inFile(
    "slots/write.ts",
    "a refusal after a lost answer is looked into",
    "return row !== undefined && isOurs(row) ? row : null;",
    "return null;",
  ),
  inFile(
    "slots/write.ts",
    "only our own mark makes a refused write ours",
    "return row !== undefined && isOurs(row) ? row : null;",
    "return row ?? null;",
  ),
  inFile(
    "slots/publish.ts",
    "a publication is known by its sandbox, whoever has it since",
    "row.sandboxId === made.sandboxId;",
    "row.fence === claim.fence && row.sandboxId === made.sandboxId;",
  ),
  inFile(
    "creation.ts",
    "a published worker that another has is not ours",
    'return worker.fence === claim.fence ? { kind: "published", row: worker } : { kind: "not_now" };',
    'return { kind: "published", row: worker };',
  ),
  // A creation without an answer keeps its slot until it can't land any more.
  inFile(
    "creation.ts",
    "an ambiguous creation keeps its slot",
    'case "ambiguous":\n',
    'case "ambiguous":\n      await freeClaim(ctx, claim);\n',
  ),
  inFile(
    "creation.ts",
    "an unproved sandbox is gone before its slot is free",
    'if (!(await isKilled(ctx, made.sandboxId))) return { kind: "failed", fault: made.fault, claim };',
    "void isKilled(ctx, made.sandboxId);",
  ),
  inFile(
    "creation.ts",
    "no creation starts late in its claim",
    "if (askedAtMs > lastStartMs(ctx, claim)) {",
    "if (askedAtMs > lastStartMs(ctx, claim) + 3_600_000) {",
  ),
  inFile(
    "sweep/carry-out.ts",
    "the provider is listed again before a slot of unknown content is emptied",
    'mayHaveMore: seen.state !== "leased"',
    "mayHaveMore: false",
  ),
  inFile(
    "sweep/drains.ts",
    "without that list the slot stays as it is",
    "if (slot.mayHaveMore && listed === null) return;",
    "",
  ),
  inFile(
    "sweep/drains.ts",
    "a slot whose sandbox could not be killed stays as it is",
    "return !gone.includes(false);",
    "return true;",
  ),
  // Every sandbox says whose it is, and lives only as long as somebody renews it.
  inFile(
    "creation.ts",
    "a sandbox carries its claim's generation",
    "generation: claim.generation, ttlMs",
    "generation: claim.generation - 1, ttlMs",
  ),
  inFile(
    "sweep/plan.ts",
    "the sweep renews workers",
    "const renewals = targetOf(demand) > 0 ? dueRenewals(demand) : [];",
    "const renewals = targetOf(demand) > 1e9 ? dueRenewals(demand) : [];",
  ),
  // The provider is listed first, then the table is read; what a slot knows is kept, the rest is killed.
  inFile(
    "sweep/sweep.ts",
    "the provider is listed before the table is read",
    'const listing = await listSandboxes(ctx, log);\n  const demand = await attempt(log, "read", () => readDemand(ctx));',
    'const demand = await attempt(log, "read", () => readDemand(ctx));\n  const listing = await listSandboxes(ctx, log);',
  ),
  inFile(
    "sweep/known.ts",
    "a sandbox is known by its generation",
    "row === undefined || row.generation !== sandbox.generation",
    "row === undefined",
  ),
  inFile("sweep/known.ts", "a sandbox of a slot in creation is kept", ' || row.state === "creating"', ""),
  inFile(
    "sweep/known.ts",
    "a sandbox that no slot knows is killed",
    "!isKnown(sandbox, rows.get(sandbox.slot))",
    "!isKnown(sandbox, rows.get(sandbox.slot)) && sandbox.slot < 0",
  ),
  inFile(
    "sweep/drains.ts",
    "a sandbox of a later life is not killed",
    "sandbox.slot === row.slot && sandbox.generation <= row.generation",
    "sandbox.slot === row.slot",
  ),
  // A batch under a key has one answer.
  inFile(
    "batches/held-batch.ts",
    "only a recorded answer is told",
    'if (!(await answerBatch(ctx, claim, bytes, entry))) await checkEnded("answered");',
    "await answerBatch(ctx, claim, bytes, entry);",
  ),
  // An incident costs what it costs while it lasts, and nothing after it.
  inFile(
    "sweep/plan.ts",
    "workers are renewed so early that the provider may be away for minutes",
    "const renewBelowMs = 400_000;",
    "const renewBelowMs = 150_000;",
  ),
  inFile(
    "held-lease.ts",
    "an extension without an answer is tried again soon",
    "const retryExtensionMs = 3_000;",
    "const retryExtensionMs = 90_000;",
  ),
  inFile(
    "search.ts",
    "a search outlasts a table that does not answer",
    "if (!(error instanceof Fault) || !error.retryable || isHopeless(error, search)) throw error;",
    "throw error;",
  ),
  inFile(
    "held-lease.ts",
    "a worker that can't be reached is killed before its slot is free",
    "if (await endWorker(ctx, row)) await emptySlot(ctx, row);",
    "await emptySlot(ctx, row);",
  ),
  inFile(
    "held-lease.ts",
    "a broken worker is not given out again",
    'if (condition === "healthy" && !wornOut)',
    "if (!wornOut)",
  ),
  inFile(
    "sweep/plan.ts",
    "a free worker that the list lacks is asked for",
    "    missing,\n    drains,",
    "    missing: [],\n    drains,",
  ),
  inFile(
    "sweep/renewals.ts",
    "a free worker that is said to be gone leaves its slot",
    'if ((await renewWorker(ctx, log, row)) !== "gone") return null;',
    "if ((await renewWorker(ctx, log, row)) !== undefined) return null;",
  ),
  inFile(
    "sweep/drains.ts",
    "what the list shows gone is gone, whatever kills say",
    "return row.sandboxId === undefined || listedBefore.has(row.sandboxId) || isMissing(row, after);",
    "return false;",
  ),
  inFile(
    "sweep/renewals.ts",
    "a worker that is said to be gone is killed all the same",
    "return taken === null ? null : { row: taken, mayHaveMore: false };",
    "return taken === null ? null : { row: { ...row, ...taken, sandboxId: undefined as never }, mayHaveMore: false };",
  ),
  inFile(
    "settings.ts",
    "a claim lasts until nothing can land any more",
    "createLeaseMs: 110_000",
    "createLeaseMs: 60_000",
  ),
  inFile(
    "slots/pacing.ts",
    "the pace believes no clock that is far ahead",
    "return clock.nowMs() + settings.createIntervalMs + settings.graceMs;",
    "return clock.nowMs() + settings.createIntervalMs + 7_200_000;",
  ),
  inFile(
    "runs/fold-ledger.ts",
    "no clock that is ahead settles a run that lives on",
    "const foldedUntil = settles ? Math.max(lastPlace, settledFrom(run)) : lastPlace;",
    "const foldedUntil = Math.max(lastPlace, oldUntil);",
  ),
  inFile(
    "held-lease.ts",
    "a chunk has no more time than its worker",
    "const inTime = chunk.deadlineMs <= leftMs ? chunk :",
    "const inTime = chunk.deadlineMs <= leftMs + 3_600_000 ? chunk :",
  ),
  inFile(
    "slots/acquire.ts",
    "a handler acquires workers of its own version",
    'const runsOurSupervisor = "#supervisorVersion = :version";',
    'const runsOurSupervisor = "(#supervisorVersion = :version OR NOT #supervisorVersion = :version)";',
  ),
  inFile(
    "sweep/plan.ts",
    "free workers of another version are drained",
    'if (row.supervisorVersion !== settings.supervisorVersion) return "versionDrained";',
    "",
  ),
  // What is counted is counted once.
  inFile(
    "../rewards/recorded-grading.ts",
    "a batch under a key is counted once its answer is recorded",
    "    await recordOrCountCost(held, answer, hooks, work);\n    await work.countResult();",
    "    await work.countResult();\n    await recordOrCountCost(held, answer, hooks, work);",
  ),
  inFile(
    "runs/ledger.ts",
    "an entry that is written again is the same entry",
    "await table.update(entryKey(at), expression,",
    "await table.update(entryKey({ ...at, place: at.place + Math.floor(nowMs % 1_000) }), expression,",
  ),
];
