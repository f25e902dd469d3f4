/**
 * Why somebody who waits for a worker has none yet, if that is anybody's fault.
 *
 * A service that refuses is noted when it does; one that says nothing would be noted only when its time limit is over,
 * and the waiting may end before. So an answer that is overdue counts as trouble until it comes.
 */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";

/** The table answers in milliseconds. */
const tableAnswersWithinMs = 1_500;
/** A creation takes a second or two. */
const creationTakesMs = 10_000;

export interface Trouble {
  now(): Fault | null;
  note(fault: Fault | null): void;
  watchTable<Value>(answer: Promise<Value>): Promise<Value>;
  watchCreation<Value>(answer: Promise<Value>): Promise<Value>;
}

/** `onChange` is told of each trouble, and of its end (null). */
export function createTrouble(clock: Clock, onChange: (trouble: Fault | null) => void = () => {}): Trouble {
  let trouble: Fault | null = null;
  const note = (fault: Fault | null) => {
    if (fault === trouble) return;
    trouble = fault;
    onChange(fault);
  };
  /** The fault is made only when it is needed: a waiter asks the table several times a second. */
  const watch = async <Value>(answer: Promise<Value>, afterMs: number, makeFault: () => Fault) => {
    const before = trouble;
    let overdue: Fault | null = null;
    const done = new AbortController();
    void clock.sleep(afterMs, done.signal).then(() => {
      if (done.signal.aborted) return;
      overdue = makeFault();
      note(overdue);
    });
    try {
      return await answer;
    } finally {
      done.abort();
      if (overdue !== null && trouble === overdue) note(before);
    }
  };
  return {
    now: () => trouble,
    note,
    watchTable: (answer) => watch(answer, tableAnswersWithinMs, tableIsOverdue),
    watchCreation: (answer) => watch(answer, creationTakesMs, creationIsOverdue),
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
