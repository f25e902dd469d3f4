/**
 * What the loss of a worker means for the workers to come.
 *
 * Those that were idle meanwhile may be lost as well: they are asked for a sign of life first. When workers that were
 * alive are lost again and again over nothing, new ones are asked for ever more slowly, and in the end no more.
 */
import type { ChunkLosses } from "./chunk-rest.ts";
import type { Dispatch, Service } from "./dispatch-state.ts";
import { Fault } from "./faults.ts";
import { togetherMs } from "./losses.ts";
import { pause } from "./recruiting.ts";

/** Until the next worker is asked for: from the first one on, doubled with each loss. */
const FIRST_PAUSE_MS = 50;
/** There are only so many idle workers, so it does not take long to be through with those that are lost. */
const LONGEST_PAUSE_MS = { ofIdle: 250, ofLiving: 2_000 };
/** So many workers in turn that were alive, and none of which ever started anything: no other one will do better. */
const FRUITLESS_LOSSES = 8;

export interface ServiceLosses extends ChunkLosses {
  noteStarted(): void;
}

export function lossesOf(state: Dispatch, service: Service): ServiceLosses {
  const { workerId } = service.lease;
  const aliveAt = () => (service.isProved ? service.cameAt : null);
  return {
    noteStarted() {
      service.isProved = true;
      state.lossesInTurn = 0;
    },
    noteSuspects(programs, isFirst) {
      state.isWary = true;
      return state.losses.note({ workerId, aliveAt: aliveAt(), programs, isFirst });
    },
    noteUnstarted(isFirst, fault) {
      slowDown(state, service);
      if (fault.code !== "worker_lost") return false;
      state.isWary = true;
      state.losses.note({ workerId, aliveAt: aliveAt(), programs: [], isFirst });
      if (service.isProved) noteFruitless(state, fault);
      return service.isProved && !fault.isKnownCause;
    },
    async hearOfOthers() {
      if (state.crew.size > 1) await state.setup.clock.sleep(togetherMs, state.stop.signal);
    },
  };
}

function slowDown(state: Dispatch, { isProved }: Service): void {
  state.lossesInTurn += 1;
  const longestMs = isProved ? LONGEST_PAUSE_MS.ofLiving : LONGEST_PAUSE_MS.ofIdle;
  pause(state, Math.min(longestMs, FIRST_PAUSE_MS * 2 ** (state.lossesInTurn - 1)));
}

function noteFruitless(state: Dispatch, fault: Fault): void {
  const { board } = state.setup;
  state.fruitlessLosses += 1;
  if (board.programsRun() === 0 && state.fruitlessLosses >= FRUITLESS_LOSSES)
    board.failAll(describeFruitless(fault));
}

function describeFruitless(fault: Fault): Fault {
  const detail = `${FRUITLESS_LOSSES} workers in turn were lost before they had started a program. Send it again later.`;
  return new Fault("worker_lost", detail, { cause: fault });
}
