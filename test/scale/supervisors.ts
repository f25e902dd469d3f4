/**
 * Workers' supervisors: cases start in their order, one per CPU, whichever chunk they are of; what happens is told as
 * it happens, and reaches the handler half a round trip later.
 */
import type { CaseEnd, Chunk, WorkerEvent } from "../../functions/rewards/ports.ts";
import { drawMs, type Supervise } from "../simulation/cloud.ts";
import type { SimulatedTime } from "../simulation/simulated-time.ts";
import { caseOverheadCpuMs, latencies, slotsPerWorker, timeLimitMs } from "./assumptions.ts";
import { readCaseMs } from "./programs.ts";

export interface Supervisors {
  readonly supervise: Supervise;
  /** For how long CPUs ran programs so far, all workers together. */
  busyMs(): number;
  /** Requests with chunks so far. */
  chunks(): number;
}

interface Told {
  readonly atMs: number;
  readonly event: WorkerEvent;
}

export function createSupervisors(world: () => { time: SimulatedTime; random: () => number }): Supervisors {
  const slotsFreeAtMs = new Map<string, number[]>();
  let busyMs = 0;
  let chunks = 0;
  return {
    busyMs: () => busyMs,
    chunks: () => chunks,
    async *supervise(sandboxId, chunk, signal) {
      const { time, random } = world();
      chunks += 1;
      const freeAtMs = slotsFreeAtMs.get(sandboxId) ?? new Array<number>(slotsPerWorker).fill(0);
      slotsFreeAtMs.set(sandboxId, freeAtMs);
      const plan = planChunk(chunk, freeAtMs, time.nowMs());
      busyMs += plan.busyMs;
      const wayMs = drawMs(latencies.workerWayMs, random);
      for (const { atMs, event } of plan.told) {
        const waitMs = atMs + wayMs - time.nowMs();
        if (waitMs > 0) await time.sleep(waitMs, signal);
        if (signal.aborted) return yield { kind: "summary", end: "cancelled" };
        yield event;
      }
      yield { kind: "summary", end: "completed" };
    },
  };
}

/** When a chunk's cases start and end on CPUs that are free from then on. */
function planChunk(chunk: Chunk, freeAtMs: number[], nowMs: number) {
  const told: Told[] = [];
  let busyMs = 0;
  const occupy = (forMs: number) => {
    const slot = freeAtMs.indexOf(Math.min(...freeAtMs));
    const startAtMs = Math.max(nowMs, freeAtMs[slot] ?? 0);
    freeAtMs[slot] = startAtMs + forMs;
    busyMs += forMs;
    return { startAtMs, endAtMs: startAtMs + forMs };
  };
  for (const { id: programId, source, inputs } of chunk.programs) {
    const caseMs = readCaseMs(source);
    if (caseMs === null) {
      const detail = "line 1: invalid syntax";
      told.push({
        atMs: occupy(caseOverheadCpuMs).endAtMs,
        event: { kind: "syntax_error", programId, detail },
      });
      continue;
    }
    const programMs = Math.min(caseMs, timeLimitMs);
    const end: CaseEnd = caseMs > timeLimitMs ? { kind: "time_limit" } : { kind: "exited", exitCode: 0 };
    for (const [caseIndex, input] of inputs.entries()) {
      const { startAtMs, endAtMs } = occupy(programMs + caseOverheadCpuMs);
      told.push({ atMs: startAtMs, event: { kind: "case_started", programId, caseIndex } });
      const figures = { wallMs: programMs, cpuMs: programMs, peakRssKib: 16_000 };
      const outcome = { end, stdout: input, stderrTail: "", ...figures };
      told.push({ atMs: endAtMs, event: { kind: "case_ended", programId, caseIndex, outcome } });
    }
  }
  return { told: told.sort((one, other) => one.atMs - other.atMs), busyMs };
}
