/**
 * Why somebody who waits for a worker has none yet, if that is anybody's fault.
 *
 * A service that refuses is noted when it does; one that says nothing would be noted only when its time limit is over,
 * and the waiting may end before. So an answer that is overdue counts as trouble until it comes: the table's first,
 * without which nothing is known.
 */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";

/** The table answers in milliseconds. */
const tableAnswersWithinMs = 1_500;
/** A creation takes a second or two. */
export const creationTakesMs = 10_000;

export interface Trouble {
  now(): Fault | null;
  note(fault: Fault | null): void;
  watchTable<Value>(answer: Promise<Value>): Promise<Value>;
  watchCreation<Value>(answer: Promise<Value>): Promise<Value>;
  /** Nobody waits any more: nobody is told of changes, whatever is still overdue. */
  end(): void;
}

/** `onChange` is told of each trouble, and of its end (null). */
export function createTrouble(clock: Clock, onChange: (trouble: Fault | null) => void = () => {}): Trouble {
  const known: Record<"noted" | "table" | "creation", Fault | null> = {
    noted: null,
    table: null,
    creation: null,
  };
  let told: Fault | null = null;
  let isOver = false;
  const now = () => known.table ?? known.creation ?? known.noted;
  const note = (what: keyof typeof known, fault: Fault | null) => {
    known[what] = fault;
    if (isOver || now() === told) return;
    told = now();
    onChange(told);
  };
  /** The fault is made only when it is needed: a waiter asks the table several times a second. */
  const watch = async <Value>(
    what: "table" | "creation",
    answer: Promise<Value>,
    overdue: { readonly afterMs: number; readonly makeFault: () => Fault },
  ) => {
    let fault: Fault | null = null;
    const done = new AbortController();
    void clock.sleep(overdue.afterMs, done.signal).then(() => {
      if (done.signal.aborted) return;
      fault = overdue.makeFault();
      note(what, fault);
    });
    try {
      return await answer;
    } finally {
      done.abort(null); // without a reason Node makes an error, and its stack costs more than the wait
      if (fault !== null && known[what] === fault) note(what, null);
    }
  };
  return {
    now,
    note: (fault) => note("noted", fault),
    watchTable: (answer) =>
      watch("table", answer, { afterMs: tableAnswersWithinMs, makeFault: tableIsOverdue }),
    watchCreation: (answer) =>
      watch("creation", answer, { afterMs: creationTakesMs, makeFault: creationIsOverdue }),
    end() {
      isOver = true;
    },
  };
}

function tableIsOverdue(): Fault {
  return new Fault("store_unavailable", "The table has not answered in time. Send the batch again later.");
}

function creationIsOverdue(): Fault {
  return new Fault(
    "sandbox_unavailable",
    "E2B takes too long to create a worker. Send the batch again later.",
  );
}
