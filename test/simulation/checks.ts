/** What a mutant is put to: worlds, the exhaustive check, and single writes in the states where a clause decides. */
import type { UpdateExpression } from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { creationScenes } from "../pool/creation-scenes.ts";
import { leaseScenes } from "../pool/lease-scenes.ts";
import { createMemoryTable } from "../pool/memory-table.ts";
import { runScenes } from "../pool/run-scenes.ts";
import { over, type TestHandler, testHandler } from "../pool/test-pool.ts";

export { explore } from "./exhaustive.ts";
export { stayIdle } from "./quiet.ts";
export { simulate } from "./simulation.ts";
export { weathers } from "./weather.ts";

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

/** How often the verb's write is applied in the state in which that clause must refuse it; null without such a state. */
export async function playScene(name: string, clause: string): Promise<number | null> {
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
