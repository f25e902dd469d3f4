/**
 * Every clause of every condition matters: for each there is a state of the table in which it alone refuses.
 *
 * The write is tried twice from there: with the expression as it is (refused, and the row untouched), and with that one
 * clause removed from the string (applied). A clause that nobody needs can't have such a state, and a clause without
 * one here fails the last test.
 */
import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { nameExpression } from "../../functions/pool/identity.ts";
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { claimExpression, claimSlot, unclaimSlot } from "../../functions/pool/slots/claim.ts";
import { admitCreation, admitCreationExpression } from "../../functions/pool/slots/pacing.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";
import { forgettingClause } from "./broken-table.ts";
import type { Scene } from "./clause-scene.ts";
import { creationScenes } from "./creation-scenes.ts";
import { leaseScenes } from "./lease-scenes.ts";
import { createMemoryTable } from "./memory-table.ts";
import { anna, claimed, over, testHandler } from "./test-pool.ts";

const scenes = [...creationScenes, ...leaseScenes];

/** The scene's write over the table as it is, or over one that forgets. */
async function play(scene: Scene, mutate: (table: Table) => Table) {
  const table = createMemoryTable();
  const handler = testHandler(table);
  const write = await scene(handler);
  const before = structuredClone(table.rows());
  const answer = await write(over(handler, mutate(table)));
  const changed = JSON.stringify(table.rows()) !== JSON.stringify(before);
  return { refused: answer === null || answer === false, changed };
}

describe("without one clause", () => {
  it.each(
    scenes.map(([expression, clause, harm, scene]) => ({
      name: expression.name,
      clause,
      harm,
      expression,
      scene,
    })),
  )("$name, without «$clause»: $harm", async ({ expression, clause, scene }) => {
    expect(await play(scene, (table) => table)).toEqual({ refused: true, changed: false });
    expect(await play(scene, (table) => forgettingClause(table, expression, clause))).toEqual({
      refused: false,
      changed: true,
    });
  });

  it("covers every clause of every expression", async () => {
    const all = await allExpressions();
    const clauses = all.flatMap((expression) =>
      expression.clauses.map((clause) => `${expression.name}: ${clause}`),
    );
    const covered = scenes.map(([{ name }, clause]) => `${name}: ${clause}`);
    console.log(
      `clauses whose removal is found: ${covered.length} of ${clauses.length}, in ${all.length} expressions`,
    );
    expect(covered.toSorted()).toEqual(clauses.toSorted());
  });
});

describe("with one alternative less", () => {
  it.each([
    [
      claimExpression,
      "attribute_not_exists(#state) OR ",
      "a slot that was never used can't be claimed",
      false,
    ],
    [claimExpression, " OR #state = :empty", "a slot that was emptied can't be claimed again", true],
    [admitCreationExpression, "attribute_not_exists(#nextCreateAtMs) OR ", "nobody can be the first", false],
    [admitCreationExpression, " OR #nextCreateAtMs <= :nowMs", "nobody can be the second", true],
    [
      admitCreationExpression,
      " OR #nextCreateAtMs = :tooFarMs",
      "nobody can follow one whose clock is fast",
      "fast",
    ],
  ] as const)("$name without «%s»: %s", async (expression, alternative, _, isSecond) => {
    const table = createMemoryTable();
    const handler = testHandler(table);
    const isClaim = expression === claimExpression;
    if (isSecond && isClaim) await unclaimSlot(handler, await claimed(handler, 0));
    if (isSecond && !isClaim) await admitCreation(handler.at(isSecond === "fast" ? 3_600_000 : 0));
    handler.at(5_000);
    const write = (ctx: SlotContext) => (isClaim ? claimSlot(ctx, 0, anna.runTag) : admitCreation(ctx));
    const shorter = (clause: string) => clause.replace(alternative, "");
    const narrow: Table = {
      ...table,
      update: (key, { clauses, ...rest }, values) =>
        table.update(
          key,
          { ...rest, clauses: clauses.map(shorter) },
          used(rest.update, clauses.map(shorter), values),
        ),
    };
    expect([null, false]).toContain(await write(over(handler, narrow)));
    expect([null, false]).not.toContain(await write(handler));
  });
});

/** Every expression that a verb exports, and the one that names the pool. */
async function allExpressions(): Promise<UpdateExpression[]> {
  const folder = new URL("../../functions/pool/slots/", import.meta.url);
  const modules = await Promise.all(readdirSync(folder).map((file) => import(new URL(file, folder).href)));
  const exported = modules.flatMap((module: Record<string, unknown>) => Object.values(module));
  return [nameExpression, ...exported.filter(isExpression)];
}

function isExpression(value: unknown): value is UpdateExpression {
  return typeof value === "object" && value !== null && "clauses" in value && "update" in value;
}

function used<T>(update: string, clauses: string[], values: Readonly<Record<string, T>>) {
  const text = [update, ...clauses].join(" ");
  return Object.fromEntries(Object.entries(values).filter(([name]) => new RegExp(`${name}\\b`).test(text)));
}
