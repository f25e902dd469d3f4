/**
 * What the pool needs from the outside: one table, sandboxes, and workers made of them.
 *
 * The table's port is as small as the protocol: read one row, read one partition, change one row under a condition.
 * Conditions and updates are DynamoDB expression strings, so whatever implements the port (the AWS adapter, or an
 * in-memory table that evaluates the same strings) runs the very text that production runs.
 */
import type { Fault } from "../rewards/faults.ts";
import type { Chunk, WorkerEvent } from "../rewards/ports.ts";

/** What a column may hold. Bytes are kept as they are, and compared with nothing. */
export type Scalar = string | number | boolean | Uint8Array;
/** A row, by its stored column names; `pk` and `sk` are among them. */
export type StoredRow = Readonly<Record<string, Scalar>>;

export interface RowKey {
  readonly pk: string;
  readonly sk: string;
}

/**
 * A conditional update of one row, in words.
 *
 * Every column is written `#likeThis` and every value `:likeThis`: some of our words are reserved in DynamoDB, and
 * stored names may be shorter than spoken ones. The condition is the clauses joined by AND; a clause with an OR brings
 * its own parentheses. No clauses: no condition.
 */
export interface UpdateExpression {
  /** Names the verb in errors, counts and tests. */
  readonly name: string;
  readonly update: string;
  readonly clauses: readonly string[];
  /** Stored column by placeholder, for exactly the placeholders used: `{"#state": "st"}`. */
  readonly columns: Readonly<Record<string, string>>;
}

/**
 * `applied` carries the whole row after the write. `refused` is the condition's no; `retried` says that an earlier
 * attempt of the same call got no answer, so the refusal may come from our own first attempt having been applied.
 */
export type UpdateOutcome =
  | { readonly kind: "applied"; readonly row: StoredRow }
  | { readonly kind: "refused"; readonly retried: boolean };

/**
 * One table. Reads are strongly consistent.
 *
 * All three throw a `Fault`: `store_unavailable` (timed out, throttled, unreachable; a write may or may not have been
 * applied) or `misconfigured` (no such table, bad credentials).
 */
export interface Table {
  get(key: RowKey): Promise<StoredRow | undefined>;
  /**
   * All rows of a partition whose `sk` begins with the prefix, in the order of `sk`. Whole or not at all. `skFrom` is for
   * who needs none before it, and may get them all the same; it goes with an empty prefix.
   */
  query(pk: string, skPrefix?: string, skFrom?: string): Promise<StoredRow[]>;
  /** Creates the row if it does not exist and the condition allows that. */
  update(
    key: RowKey,
    expression: UpdateExpression,
    values: Readonly<Record<string, Scalar>>,
  ): Promise<UpdateOutcome>;
}

/** What a sandbox says about itself to whoever lists it. */
export interface SandboxMeta {
  readonly poolId: string;
  readonly slot: number;
  readonly generation: number;
}

/** What is needed to reach a sandbox without asking anybody. */
export interface SandboxAddress {
  readonly sandboxId: string;
  /**
   * Tokens and the like, in the adapter's own compact text. It is kept in the slot's row, which every query reads:
   * up to 130 bytes keep a row below 300.
   */
  readonly access: string;
}

/** Surely nothing was created: the slot may be used again at once. */
export interface CreationRefused {
  readonly kind: "refused";
  readonly reason: "throttled" | "failed";
  readonly fault: Fault;
}

/** No answer: a sandbox may exist, or may come to exist later. */
export interface CreationAmbiguous {
  readonly kind: "ambiguous";
  readonly fault: Fault;
}

export type SandboxCreation =
  | ({ readonly kind: "created" } & SandboxAddress)
  | CreationRefused
  | CreationAmbiguous;

/** `gone`: there is no such sandbox (any more). `failed`: throttled or unanswered, it may still be there. */
export type SandboxChange =
  | { readonly kind: "done" }
  | { readonly kind: "gone" }
  | { readonly kind: "failed"; readonly reason: "throttled" | "ambiguous"; readonly fault: Fault };

export interface ListedSandbox extends SandboxMeta {
  readonly sandboxId: string;
  readonly startedAtMs: number;
}

/** Machines. None of the outcomes is an exception; only `list` throws. */
export interface Sandboxes {
  create(meta: SandboxMeta, ttlMs: number, signal: AbortSignal): Promise<SandboxCreation>;
  kill(sandboxId: string): Promise<SandboxChange>;
  /** Sets the time to live to `ttlMs` from now. */
  renew(sandboxId: string, ttlMs: number): Promise<SandboxChange>;
  /** All sandboxes of the pool, running or paused; throws a `Fault` rather than answer a part of them. */
  list(poolId: string): Promise<ListedSandbox[]>;
}

export interface WorkerOrder extends SandboxMeta {
  readonly ttlMs: number;
}

/** `unproved`: there is a sandbox, but no ready supervisor in it; the pool kills it. */
export type WorkerCreation =
  | SandboxCreation
  | { readonly kind: "unproved"; readonly sandboxId: string; readonly fault: Fault };

/** A published worker, as its row describes it. */
export interface WorkerAddress extends SandboxAddress {
  readonly slot: number;
  readonly generation: number;
}

/** Runs chunks on one worker; same promises as `WorkerLease.execute`. */
export interface WorkerExecutor {
  execute(chunk: Chunk, fencingToken: number, signal: AbortSignal): AsyncIterable<WorkerEvent>;
}

export interface WorkerFactory {
  /** Makes a sandbox with a supervisor that has proved its isolation. Outcomes, not exceptions. */
  create(order: WorkerOrder, signal: AbortSignal): Promise<WorkerCreation>;
  /** Reaches a published worker, without a round trip. */
  attach(worker: WorkerAddress): WorkerExecutor;
}

/** Ends what runs on a worker. */
export interface WorkerStopper {
  /**
   * Raises the worker's fence, and resolves once nothing of it, nor of older tokens, is left. Throws a `Fault` when the
   * worker doesn't say so.
   */
  stop(worker: WorkerAddress, fencingToken: number, signal: AbortSignal): Promise<void>;
}
