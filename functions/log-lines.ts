/** Structured log lines on standard output, which the platform collects. */
import type { LogEvent } from "./api/log.ts";
import type { PoolEvent } from "./pool/lease-source.ts";
import { Fault } from "./rewards/faults.ts";

export function writeLine(line: Readonly<Record<string, unknown>>): void {
  console.log(JSON.stringify(line));
}

export const logLine: LogEvent = ({ cause, ...event }) => {
  writeLine({ ...event, ...(cause === undefined ? {} : { cause: describeError(cause) }) });
};

/** Only what went wrong: the rest is in the answers' usage and in the runs' totals. */
export function logPoolEvent(event: PoolEvent): void {
  if (event.kind === "fault")
    writeLine({ level: "warn", message: "fault in the pool", ...describeError(event.fault) });
}

function describeError(error: unknown): { readonly code: string; readonly detail: string } {
  if (error instanceof Fault) return { code: error.code, detail: error.message };
  return {
    code: "internal",
    detail: error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error),
  };
}
