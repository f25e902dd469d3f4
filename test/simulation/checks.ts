/** What a mutant is put to: worlds, the exhaustive check, and single writes in the states where a clause decides. */
import type { ListedSandbox, UpdateExpression } from "../../functions/pool/ports.ts";
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { admitCreation } from "../../functions/pool/slots/pacing.ts";
import { isKnown } from "../../functions/pool/sweep/known.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { batchScenes } from "../pool/batch-scenes.ts";
import { creationScenes } from "../pool/creation-scenes.ts";
import { leaseScenes } from "../pool/lease-scenes.ts";
import { createMemoryTable } from "../pool/memory-table.ts";
import { runScenes } from "../pool/run-scenes.ts";
import { over, type TestHandler, testHandler } from "../pool/test-pool.ts";

export { overtakeDrainer } from "./directed.ts";
export { explore } from "./exhaustive.ts";
export { losePublication } from "./lost-publication.ts";
export { loseIdleWorkers, stayIdle } from "./quiet.ts";
export { simulate } from "./simulation.ts";
export { weathers } from "./weathers.ts";

type Write = (handler: TestHandler) => Promise<() => Promise<unknown>>;

interface Scene {
  readonly expression: UpdateExpression;
  readonly clause: string;
  readonly harm: string;
  readonly write: Write;
}

const scenes: readonly Scene[] = [
  ...[...creationScenes, ...leaseScenes].map(([expression, clause, harm, scene]): Scene => {
    const write: Write = async (handler) => {
      const send = await scene(handler);
      return () => send(over(handler, handler.table));
    };
    return { expression, clause, harm, write };
  }),
  ...runScenes.map(([expression, clause, harm, scene]): Scene => {
    const write: Write = async (handler) => {
      const send = await scene(handler);
      return () => send(handler.table);
    };
    return { expression, clause, harm, write };
  }),
];

/** How often the verb's write is applied in the state in which that clause must refuse it; null without such a state.
 * Of a batch's record: how often its promise is broken. */
export async function playScene(name: string, clause: string): Promise<number | null> {
  // These take the clause's text from the source, where a mutant has it within its own.
  const promise = batchScenes.find((one) => one.expression.name === name && one.clause.includes(clause));
  if (promise !== undefined) return (await promise.play(createMemoryTable())) ? 0 : 1;
  const scene = scenes.find(({ expression, clause: of }) => expression.name === name && of === clause);
  if (scene === undefined) return null;
  const table = createMemoryTable();
  const send = await scene.write(testHandler(table));
  const before = table.log.length;
  await send().catch((error: unknown) => {
    // Without the clause a row may come out that nobody can read.
    if (!(error instanceof Fault)) throw error;
  });
  return table.log.slice(before).filter(({ verb }) => verb === name).length;
}

/** The clause's text, by its place in the verb's condition. */
export function clauseOf(name: string, index: number): string {
  const scene = [...scenes, ...batchScenes].find(({ expression }) => expression.name === name);
  return scene?.expression.clauses[index] ?? "";
}

/** Whether a creation is admitted after one by a process whose clock is an hour ahead. */
export async function isPaceFree(): Promise<boolean> {
  const table = createMemoryTable();
  await admitCreation(testHandler(table).at(3_600_000));
  return admitCreation(testHandler(table));
}

/** Which sandboxes a slot in creation takes for the one that it waits for. */
export function knownToCreation(): string[] {
  const sandbox: ListedSandbox = { sandboxId: "i1", poolId: "p", slot: 0, generation: 5, startedAtMs: 0 };
  const row: SlotRow = { slot: 0, state: "creating", fence: 5, generation: 5 };
  const known = { "its own": sandbox, "one of an earlier life": { ...sandbox, generation: 1 } };
  return Object.entries(known).flatMap(([what, listed]) => (isKnown(listed, row) ? [what] : []));
}
