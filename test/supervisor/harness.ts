/** A ready supervisor for a test, and chunks for it. */
import { expect } from "vitest";
import { processTree } from "./host-view.ts";
import { type LaunchOptions, launchSupervisor, type Mode } from "./launch.ts";
import { settledCount, vanish } from "./waiting.ts";
import { type Answer, type Chunk, type Endpoint, type Limits, openChunk, type Program } from "./wire.ts";

const DEFAULT_LIMITS: Limits = { time_ms: 2000, memory_mib: 192, output_bytes: 65_536 };

export interface Supervisor extends Required<Endpoint> {
  readonly mode: Mode;
  readonly pid: number;
  readonly folder: string;
  /** What health said as it became ready. */
  readonly health: Record<string, unknown>;
  /** Runs a chunk to its end. */
  execute(chunk: Chunk): Promise<Answer>;
  /** A chunk of these programs under a token that is never lower than one used before, and an id of its own. */
  chunk(programs: Program[], changes?: Partial<Chunk>): Chunk;
  /** Waits until no more processes belong to it than when it became idle first. */
  becomeIdle(): Promise<void>;
  /** Ends it and asserts that nothing of it is left. */
  close(signal?: NodeJS.Signals): Promise<void>;
}

export function makeProgram(
  id: string,
  source: string,
  inputs = [""],
  limits: Partial<Limits> = {},
): Program {
  return { id, source, inputs, limits: { ...DEFAULT_LIMITS, ...limits } };
}

/** Starts a supervisor and waits until it is ready; prepared sandboxes come up after that, so it settles first. */
export async function startSupervisor(options: LaunchOptions): Promise<Supervisor> {
  const { endpoint, pid, folder, health, stop } = await launchSupervisor(options);
  expect(health).toMatchObject({ status: 200, body: { state: "ready" } });
  const idleCount = await settledCount(() => processTree(pid));
  let lastToken = 1;
  let chunkCount = 0;
  return {
    ...endpoint,
    mode: options.mode,
    pid,
    folder,
    health: health.body,
    execute: (chunk) => openChunk(endpoint, chunk).answer,
    chunk(programs, changes = {}) {
      chunkCount += 1;
      lastToken = Math.max(lastToken, changes.fencing_token ?? 0);
      const own = {
        fencing_token: lastToken,
        chunk_id: `chunk-${chunkCount}`,
        deadline_ms: 60_000,
        programs,
      };
      return { ...own, ...changes };
    },
    becomeIdle: () => vanish(() => processTree(pid).slice(idleCount), "processes of programs"),
    close: (signal = "SIGTERM") => stop(signal),
  };
}
