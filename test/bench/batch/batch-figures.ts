/** What a large batch costs the handler, beside a smaller one, and what it may. */
import { atMost, type Floor } from "../floors.ts";
import { makeLargeBatch } from "./large-batch.ts";
import { type MeasuredHandler, startMeasuredHandler } from "./measured-handler.ts";
import { requestStreamed, type StreamedAnswer } from "./streamed-request.ts";

export interface BatchFigures {
  readonly samples: number;
  /** The most that was left on the heap after a collection. */
  readonly heap_mib: number;
  /** The same of buffers outside of the heap. */
  readonly external_mib: number;
  /** The most that the process took, its garbage collected as ever. */
  readonly rss_mib: number;
  readonly cpu_ms_per_sample: number;
  readonly longest_gap_seconds: number;
  readonly wall_seconds: number;
}

export const batchBounds = { heapRatio: 1.5, cpuMsPerSample: 1, gapSeconds: 10 } as const;

/**
 * Grades one streamed batch of each size, once as ever and once with its garbage collected again and again; with
 * `standIns` no program is run. Throws when a reward is not 1 or a result is missing.
 */
export async function measureBatches(
  sizes: readonly number[],
  options: { readonly standIns: boolean },
): Promise<readonly BatchFigures[]> {
  const handler = await startMeasuredHandler(options);
  try {
    await gradeLarge(handler, Math.min(...sizes)); // code is compiled, workers are there
    const figures: BatchFigures[] = [];
    for (const samples of sizes) figures.push(await measureBatch(handler, samples));
    return figures;
  } finally {
    await handler.close();
  }
}

async function measureBatch(handler: MeasuredHandler, samples: number): Promise<BatchFigures> {
  const plain = await handler.measure(false, () => gradeLarge(handler, samples));
  const collected = await handler.measure(true, () => gradeLarge(handler, samples));
  return {
    samples,
    heap_mib: collected.holding.heapMib,
    external_mib: collected.holding.externalMib,
    rss_mib: plain.holding.rssMib,
    cpu_ms_per_sample: plain.holding.cpuMs / samples,
    longest_gap_seconds: plain.value.longestGapSeconds,
    wall_seconds: plain.value.wallSeconds,
  };
}

async function gradeLarge(handler: MeasuredHandler, samples: number): Promise<StreamedAnswer> {
  const answer = await requestStreamed(handler, makeLargeBatch(samples));
  const right = answer.rewards.filter((reward) => reward === 1).length;
  if (right !== samples || answer.results !== samples)
    throw new Error(`of ${samples} right programs ${right} got 1, and ${answer.results} had a result line`);
  return answer;
}

/** Bounds of the largest batch, its heap held against the smallest one's. */
export function judgeBatches(figures: readonly BatchFigures[]): readonly Floor[] {
  const [small, large] = [figures[0], figures.at(-1)];
  if (small === undefined || large === undefined) throw new Error("no batch was measured");
  const heap = `heap after collection: times that of ${small.samples} samples`;
  return [
    atMost(heap, large.heap_mib / small.heap_mib, batchBounds.heapRatio),
    atMost("CPU milliseconds a sample", large.cpu_ms_per_sample, batchBounds.cpuMsPerSample),
    atMost("longest time without a line, in seconds", large.longest_gap_seconds, batchBounds.gapSeconds),
  ];
}
