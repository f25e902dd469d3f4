/** A chunk as a supervisor is sent it. `rewards/request-size.ts` counts on its size. */
import type { Chunk, ProgramJob } from "../rewards/ports.ts";

/** A checker is sent once, however many programs it judges. */
export function describeChunk(chunk: Chunk, fencingToken: number, leftMs: number): string {
  const names = nameCheckers(chunk.programs);
  const checkers = Object.fromEntries([...names].map(([source, name]) => [name, source]));
  return JSON.stringify({
    fencing_token: fencingToken,
    chunk_id: chunk.chunkId,
    deadline_ms: Math.max(1, Math.floor(leftMs)),
    ...(names.size === 0 ? {} : { checkers }),
    programs: chunk.programs.map(({ id, source, mode, checker, inputs, limits }) => ({
      id,
      source,
      mode,
      ...(checker === undefined ? {} : { checker: names.get(checker) }),
      inputs,
      limits: { time_ms: limits.timeMs, memory_mib: limits.memoryMib, output_bytes: limits.outputBytes },
    })),
  });
}

function nameCheckers(programs: readonly ProgramJob[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const { checker } of programs)
    if (checker !== undefined && !names.has(checker)) names.set(checker, `c${names.size}`);
  return names;
}
