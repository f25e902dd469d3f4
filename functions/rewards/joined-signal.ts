/** A signal that is aborted as soon as one of several is, for the same reason. */
export interface JoinedSignal {
  readonly signal: AbortSignal;
  /** Lets go of them; to be called in the end. */
  leave(): void;
}

/**
 * Joins signals of which one outlives the others by far. `AbortSignal.any` would do, but on Node 20 it leaves a trace in
 * each of its sources for good: in one that lives as long as the process, memory for every batch.
 */
export function joinSignals(...sources: readonly (AbortSignal | undefined)[]): JoinedSignal {
  const joined = new AbortController();
  const end = (event: Event) => joined.abort((event.target as AbortSignal).reason);
  for (const source of sources) {
    if (source?.aborted) joined.abort(source.reason);
    source?.addEventListener("abort", end, { once: true });
  }
  return {
    signal: joined.signal,
    leave() {
      for (const source of sources) source?.removeEventListener("abort", end);
    },
  };
}
