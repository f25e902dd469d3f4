/**
 * Whether a batch could be graded now: is the table there, does E2B take our key, how is the pool.
 *
 * That workers can be made of E2B's sandboxes is only known from creations: a template without Python, or a kernel
 * that can't isolate, is told by the last one of this container.
 */
import { Fault } from "../rewards/faults.ts";
import { type PoolView, readPool } from "./pool-view.ts";
import type { Sandboxes } from "./ports.ts";
import type { SlotRow } from "./slot-row.ts";
import type { SlotContext } from "./slots/write.ts";

export interface PoolReadiness {
  readonly isReady: boolean;
  /** `ok` or what is wrong, per thing that was looked at. */
  readonly checks: Readonly<Record<string, unknown>>;
}

/** Looks at each; what can't be reached is a failed check and not an exception. */
export async function probePool(
  ctx: SlotContext & { readonly poolId: () => Promise<string> },
  sandboxes: Pick<Sandboxes, "list">,
  creationFault: () => Fault | null = () => null,
): Promise<PoolReadiness> {
  const [table, e2b] = await Promise.all([
    check(() => readPool(ctx)),
    check(async () => sandboxes.list(await ctx.poolId())),
  ]);
  const e2bProblem = e2b.problem ?? lastingProblem(creationFault());
  return {
    isReady: table.problem === null && e2bProblem === null,
    checks: {
      table: table.problem ?? "ok",
      e2b: e2bProblem ?? "ok",
      pool: table.value === null ? null : countSlots(table.value, ctx.settings.slots),
    },
  };
}

/** A creation may fail for a moment; these last until somebody changes something. */
function lastingProblem(fault: Fault | null): string | null {
  const isLasting = fault?.code === "misconfigured" || fault?.code === "isolation_failed";
  return isLasting ? describe(fault) : null;
}

function describe({ code, message }: Fault): string {
  return `${code}: ${message}`;
}

async function check<Value>(look: () => Promise<Value>) {
  try {
    return { value: await look(), problem: null };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { value: null, problem: describe(error) };
  }
}

function countSlots(view: PoolView, slots: number) {
  const count = (state: SlotRow["state"]) => view.slots.filter((row) => row.state === state).length;
  return { slots, ready: count("ready"), leased: count("leased"), creating: count("creating") };
}
