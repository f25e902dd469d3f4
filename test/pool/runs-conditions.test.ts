/** Every clause of a run's writes matters: for each there is a state in which it alone refuses. */
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { wakeDefaultExpression } from "../../functions/pool/runs/enter.ts";
import { finishExpression } from "../../functions/pool/runs/finish.ts";
import { foldExpression, setBeatExpression } from "../../functions/pool/runs/fold-ledger.ts";
import { heartbeatExpression } from "../../functions/pool/runs/heartbeat.ts";
import { idleShareExpression } from "../../functions/pool/runs/idle-share.ts";
import {
  noteBatchExpression,
  noteCostExpression,
  noteStartExpression,
} from "../../functions/pool/runs/ledger.ts";
import { registerExpression } from "../../functions/pool/runs/register.ts";
import { claimUnreportedExpression } from "../../functions/pool/runs/settle.ts";
import { idleLedgerExpression } from "../../functions/pool/sweep/idle-time.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { forgettingClause } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";
import { onePruned, type RunScene, runScenes } from "./run-scenes.ts";
import { testHandler } from "./test-pool.ts";

async function play(scene: RunScene, mutate: (table: Table) => Table) {
  const table = createMemoryTable();
  const write = await scene(testHandler(table));
  const writesBefore = table.log.length;
  // Without the clause a row may come out that nobody can read.
  await write(mutate(table)).catch((error: unknown) => expect(error).toBeInstanceOf(Fault));
  return table.log.slice(writesBefore).map(({ verb }) => verb);
}

describe("without one clause", () => {
  it.each(
    runScenes.map(([expression, clause, harm, scene]) => ({
      name: expression.name,
      clause,
      harm,
      expression,
      scene,
    })),
  )("$name, without «$clause»: $harm", async ({ expression, clause, scene }) => {
    const count = (verbs: string[]) => verbs.filter((verb) => verb === expression.name).length;
    const whole = count(await play(scene, (table) => table));
    const mutant = count(await play(scene, (table) => forgettingClause(table, expression, clause)));
    expect(mutant).toBe(whole + 1);
  });

  it("covers every clause of every expression", () => {
    const all = [
      registerExpression,
      heartbeatExpression,
      finishExpression,
      wakeDefaultExpression,
      noteBatchExpression,
      noteCostExpression,
      noteStartExpression,
      claimUnreportedExpression,
      foldExpression,
      setBeatExpression,
      onePruned,
      idleShareExpression,
      idleLedgerExpression,
    ];
    const clauses = all.flatMap(({ name, clauses }) => clauses.map((clause) => `${name}: ${clause}`));
    expect(runScenes.map(([{ name }, clause]) => `${name}: ${clause}`).toSorted()).toEqual(
      clauses.toSorted(),
    );
  });
});
