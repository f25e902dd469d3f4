/** What handlers and sweeps ask of the table and of the provider, counted as it is billed. */

import type { Sandboxes, StoredRow, Table } from "../../functions/pool/ports.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { rowBytes } from "../pool/memory-table.ts";
import { accessBytes } from "./assumptions.ts";

export interface RequestCounts {
  tableRequests: number;
  /** DynamoDB's units: a write of up to 1 KiB, refused or not; a strongly consistent read of up to 4 KiB. */
  writeUnits: number;
  readUnits: number;
  /** Read units of each second of the clock: the pool is one partition, and DynamoDB refuses more than 3,000. */
  readonly readUnitsAtS: Map<number, number>;
  /** To the provider's control plane; the handful that make a worker count as one. */
  controlRequests: number;
}

export function noRequests(): RequestCounts {
  return { tableRequests: 0, writeUnits: 0, readUnits: 0, readUnitsAtS: new Map(), controlRequests: 0 };
}

/** The same context, whose times are whole milliseconds as real ones are: rows are billed by their length. */
export function countRequests(ctx: SweepContext, counts: RequestCounts): SweepContext {
  const { clock } = ctx;
  return {
    ...ctx,
    clock: { nowMs: () => Math.floor(clock.nowMs()), sleep: clock.sleep },
    table: countTable(ctx, counts),
    sandboxes: countSandboxes(ctx.sandboxes, counts),
    workers: {
      attach: ctx.workers.attach,
      create(order, signal) {
        counts.controlRequests += 1;
        return ctx.workers.create(order, signal);
      },
    },
  };
}

function countTable({ table, clock }: SweepContext, counts: RequestCounts): Table {
  const noteRead = (rows: readonly StoredRow[]) => {
    counts.tableRequests += 1;
    const bytes = rows.reduce((sum, row) => sum + storedBytes(row), 0);
    const units = Math.max(1, Math.ceil(bytes / 4_096));
    counts.readUnits += units;
    const second = Math.floor(clock.nowMs() / 1_000);
    counts.readUnitsAtS.set(second, (counts.readUnitsAtS.get(second) ?? 0) + units);
  };
  return {
    async get(key) {
      const row = await table.get(key);
      noteRead(row === undefined ? [] : [row]);
      return row;
    },
    async query(pk, skPrefix, skFrom) {
      const rows = await table.query(pk, skPrefix, skFrom);
      noteRead(rows);
      return rows;
    },
    async update(key, expression, values) {
      const outcome = await table.update(key, expression, values);
      counts.tableRequests += 1;
      const bytes = outcome.kind === "applied" ? storedBytes(outcome.row) : 0;
      counts.writeUnits += Math.max(1, Math.ceil(bytes / 1_024));
      return outcome;
    },
  };
}

/** Rows are never changed, only replaced, and read far more often than written. */
const bytesOfRow = new WeakMap<StoredRow, number>();

function storedBytes(row: StoredRow): number {
  const known = bytesOfRow.get(row);
  if (known !== undefined) return known;
  const bytes = rowBytes(row) + (row.acc === undefined ? 0 : accessBytes);
  bytesOfRow.set(row, bytes);
  return bytes;
}

function countSandboxes(sandboxes: Sandboxes, counts: RequestCounts): Sandboxes {
  const counted =
    <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    (...args: Args): Result => {
      counts.controlRequests += 1;
      return call(...args);
    };
  return {
    create: counted(sandboxes.create),
    kill: counted(sandboxes.kill),
    renew: counted(sandboxes.renew),
    list: counted(sandboxes.list),
  };
}

/** A table that refuses to read more units of the pool's partition in a second than that. */
export function limitReads(table: Table, readUnitsPerS: number, nowMs: () => number): Table {
  let second = 0;
  let left = 0;
  return {
    ...table,
    async query(pk, skPrefix, skFrom) {
      const rows = await table.query(pk, skPrefix, skFrom);
      const bytes = rows.reduce((sum, row) => sum + storedBytes(row), 0);
      if (Math.floor(nowMs() / 1_000) !== second) left = readUnitsPerS;
      second = Math.floor(nowMs() / 1_000);
      left -= Math.ceil(bytes / 4_096);
      if (left < 0) throw new Fault("store_unavailable", "DynamoDB refuses a read for its rate");
      return rows;
    },
  };
}
