/**
 * The handler's side of a supervisor's HTTP interface.
 *
 * Theory of operation
 * - What breaks before the worker has told anything says nothing about the worker: a machine that was frozen has lost its
 *   sockets, with or without a reset. A reset request is sent once more at once, over a new connection; whatever else
 *   kept it from its answer is for the caller to decide on, as is an answer that somebody in between gave.
 * - Each try has the same chunk id, so that no chunk is run twice unawares. A supervisor that saw an earlier one refuses
 *   (`chunk_seen`): its answer is lost, but nothing else. The chunk is run again, under another id that makes its lines
 *   another's; the connection of the first one is closed, which stops it as soon as the supervisor sees that.
 * - Once the worker has told something, a cut can't be mended here, and silence neither (beats come every 5 s). Whether
 *   the worker or the way to it is lost, the caller finds out. Time in which this process itself was stopped is not the
 *   worker's silence.
 * - An answer that ends in peace but without a summary, or with a line that isn't an event, is a broken protocol.
 * - An answer may be another request's: a proxy mixed them up, or a connection holds one that nobody waited for. So
 *   every line must name its chunk, and every other answer repeat the nonce of its request. A line that doesn't is a
 *   broken protocol, a success that doesn't likewise, and a refusal that doesn't is somebody's in between.
 */
import { randomUUID } from "node:crypto";
import { Fault } from "../rewards/faults.ts";
import type { Chunk, Clock, WorkerEvent } from "../rewards/ports.ts";
import { describeChunk } from "./supervisor-chunk.ts";
import { brokenFrame, createLineSplitter, readFrame } from "./supervisor-frames.ts";
import {
  type Answer,
  type Connection,
  NoConnection,
  ResetBeforeAnswer,
  readWholeAnswer,
  sendRequest,
} from "./supervisor-http.ts";
import { type SilenceWatch, watchSilence } from "./supervisor-silence.ts";
import {
  type DecideReach,
  describeNetworkError,
  describeRefusal,
  explainError,
  isNetworkError,
  lost,
  orLost,
  type Unheard,
  unheard,
} from "./supervisor-unheard.ts";

export type { Connection } from "./supervisor-http.ts";

/** A worker, and the token of the lease that is held on it. */
export interface FencedConnection extends Connection {
  readonly fencingToken: number;
}

export type SupervisorHealth =
  | {
      readonly kind: "ready";
      readonly version: string;
      /** Another one after each start; null where a supervisor of another version has none. */
      readonly instance: string | null;
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

const giveUpAtOnce: DecideReach = async ({ why }) => lost(why);

/** How often a chunk may be run again whose answer was lost before it told anything. */
const mostReruns = 2;

/**
 * Runs a chunk on a worker and yields its events up to the summary.
 *
 * Throws a `Fault`: `worker_lost`, `supervisor_protocol`, or `cancelled` when `signal` was aborted, which closes the
 * connection and thereby stops the chunk's programs. `decide` may add others.
 */
export async function* executeChunk(
  connection: FencedConnection,
  chunk: Chunk,
  signal: AbortSignal,
  clock: Clock,
  decide: DecideReach = giveUpAtOnce,
): AsyncGenerator<WorkerEvent, void, undefined> {
  const deadlineAtMs = clock.nowMs() + chunk.deadlineMs;
  let reruns = 0;
  for (let tries = 1; ; tries += 1) {
    const deadlineMs = tries === 1 ? chunk.deadlineMs : deadlineAtMs - clock.nowMs();
    const chunkId = reruns === 0 ? chunk.chunkId : `${chunk.chunkId}.${reruns}`;
    const trouble = yield* tryOnce(connection, { ...chunk, chunkId, deadlineMs }, { signal, clock, tries });
    if (trouble === null) return;
    const isRerun = trouble.kind === "seen" && reruns < mostReruns;
    if (isRerun) reruns += 1;
    const fault = isRerun ? null : await decide(trouble, tries);
    if (fault !== null) throw fault;
  }
}

interface Try {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly tries: number;
}

/** Yields what the worker tells; returns null after its summary, or why there was no such end. */
async function* tryOnce(
  connection: FencedConnection,
  chunk: Chunk,
  { signal, clock, tries }: Try,
): AsyncGenerator<WorkerEvent, Unheard | null, undefined> {
  const watch = watchSilence(clock, signal);
  const progress = { hasTold: false };
  try {
    const body = describeChunk(chunk, connection.fencingToken, chunk.deadlineMs);
    const answer = await postChunk(connection, body, watch, tries > 1);
    if (answer === "too_large" || answer === "kept_off") {
      yield { kind: "summary", end: answer };
      return null;
    }
    if (!("body" in answer)) return answer;
    watch.heard();
    yield* readEvents(answer, chunk.chunkId, watch, progress);
    return null;
  } catch (error) {
    return describeBreak(error, watch, progress.hasTold);
  } finally {
    watch.end();
  }
}

function describeBreak(error: unknown, watch: SilenceWatch, hasTold: boolean): Unheard {
  const silentMs = watch.silentForMs(error);
  if (silentMs === null) {
    if (error instanceof Fault || !isNetworkError(error)) throw explainError(error);
    if (error instanceof NoConnection) return unheard("no_connection", describeNetworkError(error));
    return unheard(hasTold ? "cut" : "broken", describeNetworkError(error));
  }
  const seconds = Math.round(silentMs / 1_000);
  if (error instanceof NoConnection)
    return unheard("no_connection", `no connection could be made within ${seconds} s`);
  return unheard(hasTold ? "cut" : "silent", `it said nothing for ${seconds} s`);
}

/** Asks a worker how it is. Throws `worker_lost` when it doesn't answer, `supervisor_protocol` when it answers oddly. */
export async function readHealth(
  connection: Connection,
  signal: AbortSignal,
  { newConnection = false } = {},
): Promise<SupervisorHealth> {
  const asking = withNonce(connection);
  const request = { method: "GET", path: "/v1/health", signal, newConnection } as const;
  const answer = await wrapErrors(sendRequest(asking, request));
  const body = await wrapErrors(readJson(answer, asking.nonce));
  if (answer.status === 200 && body.state === "ready") {
    const { version, slots, fencing_token: fencingToken } = body;
    if (typeof version !== "string" || !isCount(slots) || !isCount(fencingToken)) {
      throw brokenFrame("its health has no version, slots or fencing token");
    }
    const instance = typeof body.instance === "string" && body.instance !== "" ? body.instance : null;
    return { kind: "ready", version, instance, slots, fencingToken };
  }
  if (answer.status === 503 && body.state === "starting") return { kind: "starting" };
  if (answer.status === 503 && body.state === "refused") {
    return { kind: "refused", failed: readFailedProperties(body.failed) };
  }
  throw orLost(describeRefusal(answer, body));
}

/**
 * Raises a worker's fence and waits until everything of older tokens, and of this one, is stopped. Returns how many
 * programs that ended. It is asked for seldom and soon: no connection of before is trusted with it.
 */
export async function cancel(connection: FencedConnection, signal: AbortSignal): Promise<number> {
  const asking = withNonce(connection);
  const body = JSON.stringify({ fencing_token: connection.fencingToken });
  const request = { method: "POST", path: "/v1/cancel", body, signal, newConnection: true } as const;
  const answer = await wrapErrors(sendRequest(asking, request));
  const reply = await wrapErrors(readJson(answer, asking.nonce));
  if (answer.status !== 200) throw orLost(describeRefusal(answer, reply));
  if (reply.fencing_token !== connection.fencingToken) throw brokenFrame("it stopped for another token");
  if (!isCount(reply.stopped)) throw brokenFrame("it does not say how many programs it stopped");
  return reply.stopped;
}

/** The answer's beginning when a supervisor took the chunk; throws the fault of a refusal that is about more than its size. */
async function postChunk(
  connection: Connection,
  body: string,
  watch: SilenceWatch,
  newConnection: boolean,
): Promise<Answer | Unheard | "too_large" | "kept_off"> {
  const { signal } = watch;
  const asking = withNonce(connection);
  const request = { method: "POST", path: "/v1/execute", body, signal, upload: watch } as const;
  const answer = await sendRequest(asking, { ...request, newConnection }).catch((error: unknown) => {
    if (!(error instanceof ResetBeforeAnswer) || signal.aborted) throw error;
    return sendRequest(asking, { ...request, newConnection: true });
  });
  if (answer.status === 200) return answer;
  const said = await readJson(answer, asking.nonce);
  if (answer.status === 413) {
    if (said.nonce === asking.nonce) return "too_large";
    // Another request's answer may have come in its place: a new connection has none of those.
    return newConnection ? "kept_off" : postChunk(connection, body, watch, true);
  }
  const refusal = describeRefusal(answer, said);
  if (refusal instanceof Fault) throw refusal;
  return refusal;
}

async function* readEvents(
  answer: Answer,
  chunkId: string,
  watch: SilenceWatch,
  progress: { hasTold: boolean },
): AsyncGenerator<WorkerEvent, void, undefined> {
  const splitter = createLineSplitter();
  let over = false;
  for await (const bytes of answer.body) {
    watch.heard();
    for (const line of splitter.push(bytes as Buffer)) {
      if (over) throw brokenFrame("a line follows the summary");
      const event = readFrame(line, chunkId);
      over = event.kind === "summary";
      progress.hasTold ||= event.kind !== "beat";
      watch.pause();
      yield event;
      watch.heard();
    }
  }
  if (!splitter.isBetweenLines()) throw brokenFrame("its last line is cut off");
  if (!over) throw brokenFrame("its answer ended without a summary");
}

async function wrapErrors<Value>(work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (error) {
    throw explainError(error);
  }
}

/** Every request has its own. */
function withNonce(connection: Connection): Connection & { readonly nonce: string } {
  const nonce = randomUUID();
  return { baseUrl: connection.baseUrl, headers: { ...connection.headers, "x-request-nonce": nonce }, nonce };
}

/** What a supervisor says to the request of this nonce; nothing when that isn't what was answered. */
async function readJson(answer: Answer, nonce: string): Promise<Readonly<Record<string, unknown>>> {
  const said = parseObject(await readWholeAnswer(answer));
  if (said.nonce === nonce) return said;
  if (answer.status === 200) throw brokenFrame("its answer is none to this request");
  return {};
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
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
