/** Structured log lines: one JSON object a line. Faults are told by code and detail, bugs with their stack. */
import type { LogEvent } from "./api/log.ts";
import type { PoolEvent } from "./pool/lease-source.ts";
import type { SweepFault } from "./pool/sweep/report.ts";
import { Fault } from "./rewards/faults.ts";

export interface LineLog {
  readonly writeLine: (line: Readonly<Record<string, unknown>>) => void;
  readonly log: LogEvent;
  /** Only what went wrong: the rest is in the answers' usage and in the runs' totals. */
  readonly reportPool: (event: PoolEvent) => void;
}

/** `write` takes a line without its end: `console.log` where the platform collects standard output. */
export function createLineLog(write: (line: string) => void): LineLog {
  const writeLine: LineLog["writeLine"] = (line) => write(JSON.stringify(line));
  return {
    writeLine,
    log: ({ cause, ...event }) =>
      writeLine({ ...event, ...(cause === undefined ? {} : { cause: describeError(cause) }) }),
    reportPool(event) {
      if (event.kind !== "fault") return;
      writeLine({ level: "warn", message: "fault in the pool", ...describeError(event.fault) });
    },
  };
}

function describeError(error: unknown): { readonly code: string; readonly detail: string } {
  if (error instanceof Fault) return { code: error.code, detail: error.message };
  if (isSweepFault(error)) return error;
  return {
    code: "internal",
    detail: error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error),
  };
}

/** What a pass of the sweep met is described already, for its report. */
function isSweepFault(error: unknown): error is SweepFault {
  const { action, code, detail } = (error ?? {}) as Partial<Record<keyof SweepFault, unknown>>;
  return typeof action === "string" && typeof code === "string" && typeof detail === "string";
}
