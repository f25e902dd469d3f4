/**
 * The handler's side of a supervisor's HTTP interface.
 *
 * Theory of operation
 * - A connection that breaks before the first byte of the answer says nothing about the worker: a machine that was
 *   frozen has lost its sockets. So that request is sent once more, with the same chunk id, over a new connection. A
 *   supervisor that saw the first one refuses the second (`chunk_seen`), and then the worker is lost.
 * - So does an answer that no supervisor gives: it is somebody's in between. Whoever calls decides what follows.
 * - Once the answer has begun, a cut is a lost worker; so is silence, since beats come every 5 s. Time in which this
 *   process itself was stopped is not the worker's silence.
 * - An answer that ends in peace but without a summary, or with a line that isn't an event, is a broken protocol.
 * - An answer may be another request's: a proxy mixed them up, or a connection holds one that nobody waited for. So
 *   every line must name its chunk, and every other answer repeat the nonce of its request. A line that doesn't is a
 *   broken protocol, a success that doesn't likewise, and a refusal that doesn't is somebody's in between.
 */
import { randomUUID } from "node:crypto";
import { Fault } from "../rewards/faults.ts";
import type { Chunk, Clock, WorkerEvent } from "../rewards/ports.ts";
import { readRetryAfterMs } from "./retry-after.ts";
import { describeChunk } from "./supervisor-chunk.ts";
import { brokenFrame, createLineSplitter, readFrame } from "./supervisor-frames.ts";
import {
  type Answer,
  type Connection,
  ResetBeforeAnswer,
  readWholeAnswer,
  sendRequest,
} from "./supervisor-http.ts";
import { type SilenceWatch, watchSilence } from "./supervisor-silence.ts";

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

/** A request that no supervisor answered. */
export interface Unreached {
  readonly why: string;
  /** Whether somebody said that there is too much to do: 429 or 503. */
  readonly isRefusal: boolean;
  /** When to ask again, as far as was said. */
  readonly retryAfterMs: number | null;
}

/** Called after each such try; null sends the request again, after the pause that it took. */
export type DecideReach = (trouble: Unreached, tries: number) => Promise<Fault | null>;

const giveUpAtOnce: DecideReach = async ({ why }) => lost(why);

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
  const watch = watchSilence(clock, signal);
  try {
    for (let tries = 1; ; tries += 1) {
      const leftMs = tries === 1 ? chunk.deadlineMs : deadlineAtMs - clock.nowMs();
      const body = describeChunk(chunk, connection.fencingToken, leftMs);
      const answer = await postChunk(connection, body, watch.signal);
      watch.heard();
      if (answer === "too_large") return yield { kind: "summary", end: answer };
      if ("body" in answer) return yield* readEvents(answer, chunk.chunkId, watch);
      watch.pause();
      const fault = await decide(answer, tries);
      if (fault !== null) throw fault;
      watch.heard();
    }
  } catch (error) {
    throw watch.explain(error, explainError);
  } finally {
    watch.end();
  }
}

/** Asks a worker how it is. Throws `worker_lost` when it doesn't answer, `supervisor_protocol` when it answers oddly. */
export async function readHealth(connection: Connection, signal: AbortSignal): Promise<SupervisorHealth> {
  const asking = withNonce(connection);
  const answer = await wrapErrors(sendRequest(asking, { method: "GET", path: "/v1/health", signal }));
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
 * programs that ended.
 */
export async function cancel(connection: FencedConnection, signal: AbortSignal): Promise<number> {
  const asking = withNonce(connection);
  const body = JSON.stringify({ fencing_token: connection.fencingToken });
  const answer = await wrapErrors(sendRequest(asking, { method: "POST", path: "/v1/cancel", body, signal }));
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
  signal: AbortSignal,
): Promise<Answer | Unreached | "too_large"> {
  const asking = withNonce(connection);
  let answer: Answer;
  try {
    answer = await post(asking, "/v1/execute", body, signal);
  } catch (error) {
    if (signal.aborted || !isNetworkError(error)) throw error;
    return { why: describeNetworkError(error), isRefusal: false, retryAfterMs: null };
  }
  if (answer.status === 200) return answer;
  const said = await readJson(answer, asking.nonce);
  if (answer.status === 413) return "too_large";
  const refusal = describeRefusal(answer, said);
  if (refusal instanceof Fault) throw refusal;
  return refusal;
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
  chunkId: string,
  watch: SilenceWatch,
): AsyncGenerator<WorkerEvent, void, undefined> {
  const splitter = createLineSplitter();
  let over = false;
  for await (const bytes of answer.body) {
    watch.heard();
    for (const line of splitter.push(bytes as Buffer)) {
      if (over) throw brokenFrame("a line follows the summary");
      const event = readFrame(line, chunkId);
      over = event.kind === "summary";
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

function explainError(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && code.startsWith("HPE_"))
    return brokenFrame(`its answer isn't HTTP (${code})`);
  return isNetworkError(error) ? lost(describeNetworkError(error), error) : error;
}

function isNetworkError(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return error instanceof ResetBeforeAnswer || (typeof code === "string" && !code.startsWith("HPE_"));
}

function describeNetworkError(error: unknown): string {
  return `its connection failed (${String((error as { code?: unknown }).code ?? "reset")})`;
}

function lost(why: string, cause?: unknown): Fault {
  return new Fault("worker_lost", `The worker was lost: ${why}.`, { cause });
}

function orLost(refusal: Fault | Unreached): Fault {
  return refusal instanceof Fault ? refusal : lost(refusal.why);
}

/** Statuses that proxies in between answer with; a supervisor's own carry a code in words. */
const proxyStatuses: readonly number[] = [404, 408, 410, 425, 429];

/** What a status that isn't a success says about the worker. */
function describeRefusal(answer: Answer, said: Readonly<Record<string, unknown>>): Fault | Unreached {
  const { status } = answer;
  const code = typeof said.code === "string" ? said.code : null;
  if (code === "chunk_seen") return lost("it has seen this chunk already and its answer is gone");
  if (code === "not_ready") return lost("it is not ready any more");
  if (code === "restarted") return lost("its supervisor was started again and has forgotten who holds it");
  if (code === null && (status >= 500 || proxyStatuses.includes(status))) {
    const why = `its address answers with status ${status}`;
    const retryAfterMs = readRetryAfterMs(answer.body.headers["retry-after"], Date.now());
    return { why, isRefusal: status === 429 || status === 503, retryAfterMs };
  }
  return brokenFrame(`it refused a request with status ${status}${code === null ? "" : ` (${code})`}`);
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
