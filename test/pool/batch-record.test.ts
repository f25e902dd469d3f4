/** A batch's record: what each clause of its writes is for, and that nothing holds without it. */
import { describe, expect, it } from "vitest";
import { readBatch } from "../../functions/pool/batches/batch-record.ts";
import {
  beginAgainExpression,
  beginBatch,
  beginBatchExpression,
} from "../../functions/pool/batches/begin-batch.ts";
import { moveEntryExpression } from "../../functions/pool/batches/count-answered.ts";
import {
  answerBatch,
  answerBatchExpression,
  endBatch,
  endBatchExpression,
  extendBatch,
  extendBatchExpression,
} from "../../functions/pool/batches/end-batch.ts";
import { cancelBatchExpression, markCancelled } from "../../functions/pool/batches/mark-cancelled.ts";
import { answer, batchScenes, begun, key, overtaken, takeOverAtMs } from "./batch-scenes.ts";
import { failing, forgettingClause, losingAnswers } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";
import { startMs, testHandler } from "./test-pool.ts";

describe("a batch's record", () => {
  it.each(batchScenes)("$promise, and would without '$clause'", async ({ expression, clause, play }) => {
    expect(await play(createMemoryTable())).toBe(true);
    expect(await play(forgettingClause(createMemoryTable(), expression, clause))).toBe(false);
  });

  it("has no clause that isn't proved here", () => {
    const all = [
      beginBatchExpression,
      beginAgainExpression,
      extendBatchExpression,
      answerBatchExpression,
      endBatchExpression,
      cancelBatchExpression,
      moveEntryExpression,
    ];
    const proved = batchScenes.map(({ expression, clause }) => `${expression.name}: ${clause}`);
    expect(all.flatMap(({ name, clauses }) => clauses.map((clause) => `${name}: ${clause}`))).toEqual(proved);
  });

  it("is had by who asks again under the same attempt, after a write of which nothing was heard", async () => {
    let isLost = true;
    const table = createMemoryTable();
    const ctx = testHandler(failing(table, () => (isLost ? "answer_lost" : "no")));
    await expect(beginBatch(ctx, key, "mine")).rejects.toMatchObject({ code: "store_unavailable" });
    isLost = false;
    expect(await beginBatch(ctx, key, "another's")).toEqual({ kind: "in_progress" });
    const again = await beginBatch(ctx, key, "mine");
    if (again.kind !== "begun") throw new Error(again.kind);
    expect(await endBatch(ctx, again.claim)).toBe(true);
    expect((await beginBatch(ctx, key, "mine")).kind).toBe("begun");
  });

  it("is right although every answer gets lost and every write is sent twice", async () => {
    const ctx = testHandler(losingAnswers(createMemoryTable(), () => true));
    const one = await begun(ctx);
    expect(await beginBatch(ctx, key)).toEqual({ kind: "in_progress" });
    expect(await extendBatch(ctx, one)).toBe(true);
    expect(await markCancelled(ctx, "b")).toMatchObject({ state: "cancelled" });
    expect(await extendBatch(ctx, one)).toBe(false);
    const two = await begun(ctx);
    expect(await readBatch(ctx, "b")).toMatchObject({ state: "running", fence: two.fence });
    await answerBatch(ctx, two, answer);
    expect(await beginBatch(ctx, key)).toEqual({ kind: "answered", answer });
    expect(await markCancelled(ctx, "b")).toMatchObject({ state: "answered" });
  });

  it.each([
    ["nothing", async () => {}, { kind: "begun" }, { kind: "begun" }],
    [
      "an attempt under way",
      async (ctx: Handler) => void (await begun(ctx)),
      { kind: "in_progress" },
      { kind: "idempotency_mismatch" },
    ],
    [
      "an answer",
      async (ctx: Handler) => void (await answerBatch(ctx, await begun(ctx), answer)),
      { kind: "answered", answer },
      { kind: "idempotency_mismatch" },
    ],
    [
      "an attempt without an answer to keep",
      async (ctx: Handler) => void (await endBatch(ctx, await begun(ctx))),
      { kind: "begun" },
      { kind: "begun" },
    ],
    [
      "a cancelled attempt",
      async (ctx: Handler) => {
        await begun(ctx);
        await markCancelled(ctx, "b");
      },
      { kind: "begun" },
      { kind: "begun" },
    ],
  ])("with %s: what is said to the same body, to another one, and after an hour", async (...row) => {
    const [, happened, toSame, toOther] = row;
    for (const [bodyHash, atMs, said] of [
      ["body", 1_000, toSame],
      ["another", 1_000, toOther],
      ["body", 3_600_000, { kind: "begun" }],
      ["another", 3_600_000, { kind: "begun" }],
    ] as const) {
      const table = createMemoryTable();
      await happened(testHandler(table));
      expect(await beginBatch(testHandler(table).at(atMs), { ...key, bodyHash })).toMatchObject(said);
    }
  });

  it("is kept for an hour from its answer on, and never known of a batch that was not begun", async () => {
    const ctx = testHandler(createMemoryTable());
    const claim = await begun(ctx);
    await answerBatch(ctx.at(50_000), claim, answer);
    expect((await beginBatch(ctx.at(3_649_000), key)).kind).toBe("answered");
    expect(await markCancelled(ctx, "another")).toBeNull();
    expect(await markCancelled(ctx.at(3_650_000), "b")).toBeNull();
    expect((await begun(ctx)).fence).toBeGreaterThan(claim.fence);
    expect((await readBatch(ctx, "b"))?.firstPart).toBeUndefined();
  });

  it("is taken from a holder who is silent, with a higher fence, and not before", async () => {
    const table = createMemoryTable();
    const { fence } = await begun(testHandler(table));
    const other = testHandler(table);
    expect((await beginBatch(other.at(takeOverAtMs - 1), key)).kind).toBe("in_progress");
    expect((await begun(other.at(takeOverAtMs))).fence).toBeGreaterThan(fence);
  });

  it("has a higher fence also when the row of an earlier hour was deleted", async () => {
    const { fence } = await begun(testHandler(createMemoryTable()));
    const later = await begun(testHandler(createMemoryTable()).at(7_200_000));
    expect([fence, later.fence]).toEqual([startMs, startMs + 7_200_000]);
  });

  it("lets nobody but a dead holder's own body be sent under its key", async () => {
    const table = createMemoryTable();
    await begun(testHandler(table));
    const other = testHandler(table).at(takeOverAtMs);
    expect(await beginBatch(other, { ...key, bodyHash: "another" })).toEqual({
      kind: "idempotency_mismatch",
    });
  });

  it("tells whose attempt was overtaken, whatever it writes", async () => {
    const { one, claim } = await overtaken(createMemoryTable());
    expect([
      await extendBatch(one, claim),
      await answerBatch(one, claim, answer),
      await endBatch(one, claim),
    ]).toEqual([false, false, false]);
  });
});

type Handler = ReturnType<typeof testHandler>;
