/** Workers on this machine as a source of leases: a fixed number, each leased to one holder at a time. */
import { executeChunk } from "../adapters/supervisor-client.ts";
import type { Clock, WorkerLease, WorkerSource } from "../rewards/ports.ts";
import { dealCpus, listHostCpus } from "./host-cpus.ts";
import { type LoopbackWorker, startLoopbackWorker } from "./loopback-worker.ts";

export interface LoopbackWorkersOptions {
  readonly count: number;
  readonly python: string;
  readonly memoryMib: number;
  readonly clock: Clock;
  readonly logError: (message: string, error: unknown) => void;
}

export interface LoopbackWorkers extends WorkerSource {
  counts(): { readonly ready: number; readonly leased: number; readonly starting: number };
  /** Process ids of the supervisors that run now. */
  pids(): readonly number[];
  stop(): Promise<void>;
}

/** A place for one worker; its fencing token only grows, whoever works in it. */
interface Place {
  readonly cpus: readonly number[];
  worker: LoopbackWorker | null;
  state: "starting" | "ready" | "leased";
  fencingToken: number;
}

/** Starts all workers at once and waits for them. Throws as `startLoopbackWorker` does. */
export async function startLoopbackWorkers(options: LoopbackWorkersOptions): Promise<LoopbackWorkers> {
  const places = dealCpus(listHostCpus(), options.count).map<Place>((cpus) => ({
    cpus,
    worker: null,
    state: "starting",
    fencingToken: 0,
  }));
  const waiting = new Set<(place: Place) => void>();
  let stopped = false;

  const offer = (place: Place) => {
    place.state = "ready";
    const [first] = waiting;
    if (!first) return;
    waiting.delete(first);
    place.state = "leased";
    first(place);
  };
  const start = async (place: Place) => {
    place.state = "starting";
    place.worker = await startLoopbackWorker({ ...options, cpus: place.cpus });
    if (stopped) await place.worker.stop();
    else offer(place);
  };
  const replace = async (place: Place) => {
    await place.worker?.stop();
    if (!stopped)
      await start(place).catch((error) => options.logError("a local worker can't be replaced", error));
  };
  const stop = async () => {
    stopped = true;
    await Promise.all(places.map((place) => place.worker?.stop()));
  };
  const lease = (place: Place) =>
    leasePlace(place, options.clock, (condition) => {
      if (condition === "healthy") offer(place);
      else void replace(place);
    });

  const started = await Promise.allSettled(places.map(start));
  const failure = started.find((result) => result.status === "rejected");
  if (failure) {
    await stop();
    throw failure.reason;
  }
  return {
    counts: () => countStates(places),
    pids: () => places.flatMap(({ worker }) => (worker ? [worker.pid] : [])),
    stop,
    async acquire({ deadlineAtMs, signal }) {
      const ready = places.find((place) => place.state === "ready");
      if (ready) ready.state = "leased";
      const place = ready ?? (await waitForPlace(waiting, options.clock, deadlineAtMs, signal));
      return place && lease(place);
    },
  };
}

async function waitForPlace(
  waiting: Set<(place: Place) => void>,
  clock: Clock,
  deadlineAtMs: number,
  signal: AbortSignal,
): Promise<Place | null> {
  const over = new AbortController();
  let take: (place: Place) => void = () => {};
  const offered = new Promise<Place>((resolve) => {
    take = resolve;
    waiting.add(resolve);
  });
  const timeout = clock
    .sleep(Math.max(0, deadlineAtMs - clock.nowMs()), AbortSignal.any([signal, over.signal]))
    // A place that was offered in this very moment is no longer in `waiting`: then it must be taken.
    .then(() => (waiting.delete(take) ? null : offered));
  const place = await Promise.race([offered, timeout]);
  over.abort();
  return place;
}

function leasePlace(
  place: Place,
  clock: Clock,
  giveBack: (condition: "healthy" | "broken") => void,
): WorkerLease | null {
  const { worker } = place;
  if (!worker) return null;
  place.fencingToken += 1;
  const connection = {
    baseUrl: worker.baseUrl,
    headers: { authorization: `Bearer ${worker.secret}` },
    fencingToken: place.fencingToken,
  };
  return {
    workerId: worker.workerId,
    execute: (chunk, signal) => executeChunk(connection, chunk, signal, clock),
    release: async (condition) => giveBack(condition),
  };
}

function countStates(places: readonly Place[]) {
  const count = (state: Place["state"]) => places.filter((place) => place.state === state).length;
  return { ready: count("ready"), leased: count("leased"), starting: count("starting") };
}
