/**
 * Workers that follow a script, so that each fault happens exactly when a test wants it. They keep the supervisor's
 * rules otherwise: one `started` and one `ended` per case, one `syntax_error` per program, a summary, and chunks of a
 * worker in turn. A worker that is lost is lost to all of them.
 */
import { Fault } from "../../functions/rewards/faults.ts";
import type {
  CaseEnd,
  Chunk,
  ProgramJob,
  WorkerEvent,
  WorkerLease,
  WorkerSource,
} from "../../functions/rewards/ports.ts";

/** What happens when a case's turn comes. */
export type Step =
  | { readonly kind: "print"; readonly stdout: string }
  | { readonly kind: "end"; readonly end: CaseEnd }
  | { readonly kind: "syntax_error"; readonly detail: string }
  /** Thrown before the case starts. */
  | { readonly kind: "throw_before"; readonly error: unknown }
  /** Thrown once the case has started. */
  | { readonly kind: "throw"; readonly error: unknown }
  /** Started, unless that is said not to be, and nothing more until the chunk is aborted; that is told with this error. */
  | { readonly kind: "hang"; readonly unstarted?: true; readonly error?: unknown }
  /** Lines of the test's own choice, and then the chunk goes on. */
  | { readonly kind: "events"; readonly events: readonly WorkerEvent[] | AsyncIterable<WorkerEvent> }
  /** The answer ends here, before the case starts or after: with this summary, or without one. */
  | {
      readonly kind: "stop";
      readonly started?: true;
      readonly summary?: Extract<WorkerEvent, { kind: "summary" }>["end"];
    };

export interface Turn {
  readonly job: ProgramJob;
  readonly caseIndex: number;
  readonly input: string;
  readonly workerId: string;
  readonly chunk: Chunk;
  /** How often this source has had a turn with this input, over all workers; the first time it is 1. */
  readonly attempt: number;
}

export type Script = (turn: Turn) => Step | Promise<Step>;

export interface ScriptedLease {
  readonly workerId: string;
  readonly chunks: Chunk[];
  readonly released: ("healthy" | "broken")[];
  executing: number;
  aborted: boolean;
  /** When its last chunk has ended, what was then known to have become of the worker; null while it is well. */
  ended: Promise<unknown>;
}

export interface ScriptedWorkers extends WorkerSource {
  readonly leases: ScriptedLease[];
  readonly acquires: { deadlineAtMs: number; signal: AbortSignal }[];
  /** All chunks in the order in which they were begun. */
  readonly chunks: { readonly workerId: string; readonly chunk: Chunk }[];
  /** Workers that were asked for a sign of life. */
  readonly signs: string[];
  /** Every turn, as `source input`. */
  readonly turns: string[];
}

export interface ScriptedWorkersOptions {
  readonly script?: Script;
  /** Workers that may be held at once. */
  readonly capacity?: number;
  /** Called at each request for a worker; null refuses it. */
  readonly onAcquire?: (count: number, signal: AbortSignal) => Promise<null | undefined>;
  /** Told of at each request for a worker, one after the other. */
  readonly trouble?: readonly (Fault | null)[];
  readonly isWantedElsewhere?: () => Promise<boolean>;
  readonly beforeRelease?: () => Promise<void>;
  readonly created?: boolean;
  /** Workers that were lost before they were had: they give no sign of life. What chunks meet is the script's. */
  readonly isDead?: (workerId: string) => boolean;
  /** How it ends a chunk that asks for a sign of life; `completed` where nothing is said. */
  readonly sign?: (workerId: string) => Fault | Extract<WorkerEvent, { kind: "summary" }>["end"];
  /** When the worker's life ends, by its name. */
  readonly livesUntilMs?: (workerId: string) => number;
  /** Cases that run at once; so many may be suspects when the worker is lost. */
  readonly slots?: number;
}

/** Programs say what they do by their source. Every test's expected output is its input. */
export const obey: Script = ({ job, input }) => {
  const source = job.source.trim();
  if (source.startsWith("wrong")) return { kind: "print", stdout: '"another"' };
  if (source.startsWith("crash")) return { kind: "end", end: { kind: "exited", exitCode: 3 } };
  if (source.startsWith("segv")) return { kind: "end", end: { kind: "signaled", signal: "SIGSEGV" } };
  if (source.startsWith("slow")) return { kind: "end", end: { kind: "time_limit" } };
  if (source.startsWith("fat")) return { kind: "end", end: { kind: "memory_limit" } };
  if (source.startsWith("loud")) return { kind: "end", end: { kind: "output_limit" } };
  if (source.startsWith("broken")) return { kind: "syntax_error", detail: "line 1: invalid syntax" };
  return { kind: "print", stdout: input };
};

export function lost(detail = "The worker was lost."): Fault {
  return new Fault("worker_lost", detail);
}

export function createScriptedWorkers(options: ScriptedWorkersOptions = {}): ScriptedWorkers {
  const { script = obey, capacity = 100 } = options;
  const leases: ScriptedLease[] = [];
  const chunks: ScriptedWorkers["chunks"] = [];
  const turns: string[] = [];
  const signs: string[] = [];
  const acquires: ScriptedWorkers["acquires"] = [];
  const attempts = new Map<string, number>();
  const waiting = new Set<() => void>();
  const held = () => leases.filter((lease) => lease.released.length === 0).length;

  const beginTurn = (lease: ScriptedLease, chunk: Chunk, job: ProgramJob, caseIndex: number): Turn => {
    const input = job.inputs[caseIndex] ?? "";
    const name = `${job.source.trim()} ${input}`;
    turns.push(name);
    const attempt = (attempts.get(name) ?? 0) + 1;
    attempts.set(name, attempt);
    return { job, caseIndex, input, workerId: lease.workerId, chunk, attempt };
  };

  async function* execute(
    lease: ScriptedLease,
    chunk: Chunk,
    signal: AbortSignal,
  ): AsyncGenerator<WorkerEvent> {
    if (chunk.programs.length === 0) {
      signs.push(lease.workerId);
      if (options.isDead?.(lease.workerId)) throw lost();
      const sign = options.sign?.(lease.workerId) ?? "completed";
      if (sign instanceof Fault) throw sign;
      yield { kind: "summary", end: sign };
      return;
    } else {
      lease.chunks.push(chunk);
      chunks.push({ workerId: lease.workerId, chunk });
    }
    const before = lease.ended;
    let noteEnd: (loss: unknown) => void = () => {};
    lease.ended = new Promise((resolve) => {
      noteEnd = resolve;
    });
    lease.executing += 1;
    let loss: unknown = null;
    const onAbort = () => {
      lease.aborted = true;
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      loss = await before;
      if (loss !== null) throw loss;
      yield* play(
        chunk,
        signal,
        (job, caseIndex) => script(beginTurn(lease, chunk, job, caseIndex)),
        options.slots,
      );
    } catch (error) {
      if (error instanceof Fault && error.code === "worker_lost") loss = error;
      throw error;
    } finally {
      noteEnd(loss);
      signal.removeEventListener("abort", onAbort);
      lease.executing -= 1;
    }
  }

  return {
    leases,
    chunks,
    signs,
    turns,
    acquires,
    isWantedElsewhere: options.isWantedElsewhere ?? (async () => false),
    async acquire({ deadlineAtMs, signal, onTrouble }) {
      acquires.push({ deadlineAtMs, signal });
      for (const trouble of options.trouble ?? []) onTrouble?.(trouble);
      const decided = await options.onAcquire?.(acquires.length, signal);
      if (decided === null) return null;
      while (held() >= capacity) {
        if (signal.aborted) return null;
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
      if (signal.aborted) return null;
      const lease: ScriptedLease = {
        workerId: `w${leases.length + 1}`,
        chunks: [],
        released: [],
        executing: 0,
        aborted: false,
        ended: Promise.resolve(null),
      };
      leases.push(lease);
      const port: WorkerLease = {
        workerId: lease.workerId,
        ...(options.created === undefined ? {} : { created: options.created }),
        ...(options.livesUntilMs && { livesUntilMs: options.livesUntilMs(lease.workerId) }),
        execute: (chunk, chunkSignal) => execute(lease, chunk, chunkSignal),
        async release(condition) {
          await options.beforeRelease?.();
          lease.released.push(condition);
          for (const resolve of waiting) resolve();
          waiting.clear();
        },
      };
      return port;
    },
  };
}

/** Plays a chunk: up to `slots` cases are started before the first of them ends. */
async function* play(
  chunk: Chunk,
  signal: AbortSignal,
  decide: (job: ProgramJob, caseIndex: number) => Step | Promise<Step>,
  slots = 1,
): AsyncGenerator<WorkerEvent> {
  const cases = chunk.programs.flatMap((job) => job.inputs.map((_, caseIndex) => ({ job, caseIndex })));
  const broken = new Set<string>();
  for (let from = 0; from < cases.length; from += slots) {
    const together = cases.slice(from, from + slots);
    const steps: { job: ProgramJob; caseIndex: number; step: Step }[] = [];
    for (const { job, caseIndex } of together) {
      if (broken.has(job.id)) continue;
      const step = await decide(job, caseIndex);
      if (signal.aborted) throw new Fault("cancelled", "The chunk was aborted.");
      if (step.kind === "throw_before") throw step.error;
      if (step.kind === "syntax_error") {
        broken.add(job.id);
        yield { kind: "syntax_error", programId: job.id, detail: step.detail };
        continue;
      }
      if (step.kind === "events") {
        yield* step.events;
        continue;
      }
      if (step.kind === "stop") {
        if (step.started) yield { kind: "case_started", programId: job.id, caseIndex };
        if (step.summary !== undefined) yield { kind: "summary", end: step.summary };
        return;
      }
      if (step.kind !== "hang" || step.unstarted !== true)
        yield { kind: "case_started", programId: job.id, caseIndex };
      steps.push({ job, caseIndex, step });
    }
    for (const { job, caseIndex, step } of steps) {
      if (step.kind === "throw") throw step.error;
      if (step.kind === "hang") {
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        throw step.error ?? new Fault("cancelled", "The chunk was aborted.");
      }
      if (step.kind === "print") yield endCase(job, caseIndex, { kind: "exited", exitCode: 0 }, step.stdout);
      else if (step.kind === "end") yield endCase(job, caseIndex, step.end);
    }
  }
  yield { kind: "summary", end: "completed" };
}

export function endCase(
  job: Pick<ProgramJob, "id">,
  caseIndex: number,
  end: CaseEnd,
  stdout = "",
): WorkerEvent {
  const outcome = { end, stdout, stderrTail: "tail", wallMs: 4, cpuMs: 3, peakRssKib: 9000 };
  return { kind: "case_ended", programId: job.id, caseIndex, outcome };
}
