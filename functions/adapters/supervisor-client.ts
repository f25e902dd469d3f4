/**
 * The handler's side of a supervisor's HTTP interface.
 *
 * Theory of operation
 * - A connection that breaks before the first byte of the answer says nothing about the worker: a machine that was
 *   frozen has lost its sockets. So that request is sent once more, with the same chunk id, over a new connection. A
 *   supervisor that saw the first one refuses the second (`chunk_seen`), and then the worker is lost.
 * - Once the answer has begun, a cut is a lost worker; so is silence, since beats come every 5 s. Time in which this
 *   process itself was stopped is not the worker's silence.
 * - An answer that ends in peace but without a summary, or with a line that isn't an event, is a broken protocol.
 */
import { Fault } from "../rewards/faults.ts";
import type { Chunk, Clock, WorkerEvent } from "../rewards/ports.ts";
import { brokenFrame, createLineSplitter, readFrame } from "./supervisor-frames.ts";
import {
  type Answer,
  type Connection,
  ResetBeforeAnswer,
  readWholeAnswer,
  sendRequest,
} from "./supervisor-http.ts";

export type { Connection } from "./supervisor-http.ts";

/** A worker that says nothing for so long while it works is lost. */
export const silenceLimitMs = 15_000;
/** Who wakes up so much too late was stopped in between. */
const oversleptMs = 2_000;

/** A worker, and the token of the lease that is held on it. */
export interface FencedConnection extends Connection {
  readonly fencingToken: number;
}

export type SupervisorHealth =
  | {
      readonly kind: "ready";
      readonly version: string;
      readonly slots: number;
      readonly fencingToken: number;
    }
  | { readonly kind: "starting" }
  /** The worker can't isolate programs. */
  | {
      readonly kind: "refused";
      readonly failed: readonly {
        readonly property: string;
        readonly detail: string;
        readonly remedy: string;
      }[];
    };

/**
 * Runs a chunk on a worker and yields its events up to the summary.
 *
 * Throws a `Fault`: `worker_lost`, `supervisor_protocol`, or `cancelled` when `signal` was aborted, which closes the
 * connection and thereby stops the chunk's programs.
 */
export async function* executeChunk(
  connection: FencedConnection,
  chunk: Chunk,
  signal: AbortSignal,
  clock: Clock,
): AsyncGenerator<WorkerEvent, void, undefined> {
  const watch = watchSilence(clock, signal);
  try {
    const answer = await post(connection, "/v1/execute", describeChunk(connection, chunk), watch.signal);
    watch.heard();
    if (answer.status !== 200) throw await explainRefusal(answer);
    yield* readEvents(answer, watch);
  } catch (error) {
    throw watch.explain(error);
  } finally {
    watch.end();
  }
}

/** Asks a worker how it is. Throws `worker_lost` when it doesn't answer, `supervisor_protocol` when it answers oddly. */
export async function readHealth(connection: Connection, signal: AbortSignal): Promise<SupervisorHealth> {
  const answer = await wrapErrors(sendRequest(connection, { method: "GET", path: "/v1/health", signal }));
  const body = await wrapErrors(readJson(answer));
  if (answer.status === 200 && body.state === "ready") {
    const { version, slots, fencing_token: fencingToken } = body;
    if (typeof version !== "string" || !isCount(slots) || !isCount(fencingToken)) {
      throw brokenFrame("its health has no version, slots or fencing token");
    }
    return { kind: "ready", version, slots, fencingToken };
  }
  if (answer.status === 503 && body.state === "starting") return { kind: "starting" };
  if (answer.status === 503 && body.state === "refused") {
    return { kind: "refused", failed: readFailedProperties(body.failed) };
  }
  throw describeRefusal(answer.status, body);
}

/**
 * Raises a worker's fence and waits until everything of older tokens, and of this one, is stopped. Returns how many
 * programs that ended.
 */
export async function cancel(connection: FencedConnection, signal: AbortSignal): Promise<number> {
  const body = JSON.stringify({ fencing_token: connection.fencingToken });
  const answer = await wrapErrors(
    sendRequest(connection, { method: "POST", path: "/v1/cancel", body, signal }),
  );
  const reply = await wrapErrors(readJson(answer));
  if (answer.status !== 200) throw describeRefusal(answer.status, reply);
  if (!isCount(reply.stopped)) throw brokenFrame("it does not say how many programs it stopped");
  return reply.stopped;
}

function describeChunk(connection: FencedConnection, chunk: Chunk): string {
  return JSON.stringify({
    fencing_token: connection.fencingToken,
    chunk_id: chunk.chunkId,
    deadline_ms: Math.max(1, Math.floor(chunk.deadlineMs)),
    programs: chunk.programs.map(({ id, source, inputs, limits }) => ({
      id,
      source,
      inputs,
      limits: { time_ms: limits.timeMs, memory_mib: limits.memoryMib, output_bytes: limits.outputBytes },
    })),
  });
}

async function post(
  connection: Connection,
  path: string,
  body: string,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    return await sendRequest(connection, { method: "POST", path, body, signal });
  } catch (error) {
    if (!(error instanceof ResetBeforeAnswer) || signal.aborted) throw error;
    return await sendRequest(connection, { method: "POST", path, body, signal, newConnection: true });
  }
}

async function* readEvents(
  answer: Answer,
  watch: SilenceWatch,
): AsyncGenerator<WorkerEvent, void, undefined> {
  const splitter = createLineSplitter();
  let over = false;
  for await (const bytes of answer.body) {
    watch.heard();
    for (const line of splitter.push(bytes as Buffer)) {
      if (over) throw brokenFrame("a line follows the summary");
      const event = readFrame(line);
      over = event.kind === "summary";
      watch.pause();
      yield event;
      watch.heard();
    }
  }
  if (!splitter.isBetweenLines()) throw brokenFrame("its last line is cut off");
  if (!over) throw brokenFrame("its answer ended without a summary");
}

interface SilenceWatch {
  /** Aborted when the caller gives up, or the worker has been silent for too long. */
  readonly signal: AbortSignal;
  heard(): void;
  /** The caller is busy with what it was given: that isn't the worker's silence. */
  pause(): void;
  end(): void;
  /** The fault behind an error. */
  explain(error: unknown): unknown;
}

function watchSilence(clock: Clock, callerSignal: AbortSignal): SilenceWatch {
  const cut = new AbortController();
  const over = new AbortController();
  const giveUp = () => cut.abort();
  if (callerSignal.aborted) giveUp();
  callerSignal.addEventListener("abort", giveUp, { once: true });
  let heardAtMs: number | null = clock.nowMs();
  let silent = false;
  const loop = async () => {
    while (!over.signal.aborted) {
      const leftMs = heardAtMs === null ? silenceLimitMs : heardAtMs + silenceLimitMs - clock.nowMs();
      silent = leftMs <= 0;
      if (silent) return cut.abort();
      const dueAtMs = clock.nowMs() + leftMs;
      await clock.sleep(leftMs, over.signal);
      // What the worker said while we were stopped is yet to be read.
      const wasStopped = clock.nowMs() > dueAtMs + oversleptMs;
      if (wasStopped && heardAtMs !== null) heardAtMs = clock.nowMs();
    }
  };
  void loop();
  return {
    signal: cut.signal,
    heard: () => {
      heardAtMs = clock.nowMs();
    },
    pause: () => {
      heardAtMs = null;
    },
    end: () => {
      over.abort();
      callerSignal.removeEventListener("abort", giveUp);
    },
    explain: (error) => {
      if (callerSignal.aborted)
        return new Fault("cancelled", "The caller stopped the chunk.", { cause: error });
      if (silent) return lost(`it said nothing for ${silenceLimitMs / 1000} s`, error);
      return explainError(error);
    },
  };
}

async function wrapErrors<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw explainError(error);
  }
}

function explainError(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const { code } = error as { code?: unknown };
  const isNetwork = typeof code === "string" || error instanceof ResetBeforeAnswer;
  if (typeof code === "string" && code.startsWith("HPE_"))
    return brokenFrame(`its answer isn't HTTP (${code})`);
  if (isNetwork) return lost(`its connection failed (${String(code ?? "reset")})`, error);
  return error;
}

function lost(why: string, cause?: unknown): Fault {
  return new Fault("worker_lost", `The worker was lost: ${why}.`, { cause });
}

async function explainRefusal(answer: Answer): Promise<Fault> {
  return describeRefusal(answer.status, await readJson(answer));
}

/** What a status that isn't a success says about the worker. Proxies in between answer 404 and 5xx without a code. */
function describeRefusal(status: number, body: Readonly<Record<string, unknown>>): Fault {
  const code = typeof body.code === "string" ? body.code : null;
  if (code === "chunk_seen") return lost("it has seen this chunk already and its answer is gone");
  if (code === "not_ready") return lost("it is not ready any more");
  if (code === null && (status >= 500 || status === 404 || status === 410)) {
    return lost(`its address answers with status ${status}`);
  }
  return brokenFrame(`it refused a request with status ${status}${code === null ? "" : ` (${code})`}`);
}

async function readJson(answer: Answer): Promise<Readonly<Record<string, unknown>>> {
  const text = await readWholeAnswer(answer);
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function readFailedProperties(failed: unknown) {
  const list = Array.isArray(failed) ? failed : [];
  return list.map((entry: Record<string, unknown> | null) => ({
    property: String(entry?.property ?? "unknown"),
    detail: String(entry?.detail ?? ""),
    remedy: String(entry?.remedy ?? ""),
  }));
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
