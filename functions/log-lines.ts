/** Structured log lines: one JSON object a line. Faults are told by code and detail, bugs with their stack. */
import { redact } from "./adapters/e2b-redaction.ts";
import type { LogEvent } from "./api/log.ts";
import type { PoolEvent } from "./pool/lease-source.ts";
import { Fault } from "./rewards/faults.ts";

export interface Line extends Readonly<Record<string, unknown>> {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
}

export type WriteLine = (line: Line) => void;

export interface LineLog {
  readonly writeLine: WriteLine;
  readonly log: LogEvent;
  /** Only what went wrong: the rest is in the answers' usage and in the runs' totals. */
  readonly reportPool: (event: PoolEvent) => void;
}

/** `write` takes a line without its end: `console.log` where the platform collects standard output. */
export function createLineLog(write: (line: string) => void): LineLog {
  return createEventLog((line) => write(JSON.stringify(line)));
}

/** The same, where something else makes lines of events. */
export function createEventLog(writeLine: WriteLine): LineLog {
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

export interface DescribedError {
  readonly code: string;
  readonly detail: string;
}

/** Whatever was thrown or reported, fit for the log. */
export function describeError(error: unknown): DescribedError {
  if (error instanceof Fault) return { code: error.code, detail: error.message };
  if (isDescribed(error))
    return { ...error, ...(error.code === "internal" && { detail: clean(error.detail) }) };
  if (error instanceof Error)
    return { code: "internal", detail: `${error.name}: ${clean(error.message)}${framesOf(error)}` };
  return { code: "internal", detail: `something of type ${typeof error} was thrown` };
}

function isDescribed(error: unknown): error is DescribedError {
  if (typeof error !== "object" || error === null || error instanceof Error) return false;
  return (
    "code" in error && typeof error.code === "string" && "detail" in error && typeof error.detail === "string"
  );
}

/**
 * A message that was not written for the log may quote what it stumbled over: a program, a secret. What it quotes is
 * left out, and what looks like a token.
 */
function clean(message: string): string {
  return redact(message.replace(/["'`].*["'`]/s, "[left out]"), []);
}

/** The stack without the message that it begins with. */
function framesOf({ message, stack = "" }: Error): string {
  const at = stack.indexOf(message);
  const end = at < 0 ? -1 : stack.indexOf("\n", at + message.length);
  return end < 0 ? "" : stack.slice(end).trimEnd();
}
