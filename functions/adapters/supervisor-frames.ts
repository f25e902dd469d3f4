/**
 * The supervisor's answer, line by line: bytes to lines, lines to events. Anything else is a broken protocol.
 */
import { isUtf8 } from "node:buffer";
import { Fault } from "../rewards/faults.ts";
import type { CaseEnd, CaseOutcome, ChunkEnd, WorkerEvent } from "../rewards/ports.ts";

/**
 * One line at most: 1 MiB of output and 1 MiB of a result escaped six-fold in JSON, a tail of standard error, and the
 * rest.
 */
export const largestLineBytes = 16 * 1024 * 1024;

const NEWLINE = 0x0a;

/**
 * Makes a splitter: give it bytes as they come, it gives back the lines that they complete. Throws a
 * `supervisor_protocol` fault at a line over `largestLineBytes`.
 */
export function createLineSplitter(): { push(bytes: Buffer): string[]; isBetweenLines(): boolean } {
  let pieces: Buffer[] = [];
  let pieceBytes = 0;
  const keep = (piece: Buffer) => {
    if (piece.length === 0) return;
    pieces.push(piece);
    pieceBytes += piece.length;
    if (pieceBytes > largestLineBytes) throw brokenFrame("a line is too long");
  };
  return {
    push(bytes) {
      const lines: string[] = [];
      let from = 0;
      for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
        keep(bytes.subarray(from, at));
        lines.push(decode(pieces));
        pieces = [];
        pieceBytes = 0;
        from = at + 1;
      }
      keep(bytes.subarray(from));
      return lines;
    },
    isBetweenLines: () => pieceBytes === 0,
  };
}

function decode(pieces: readonly Buffer[]): string {
  const line = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces);
  if (!isUtf8(line)) throw brokenFrame("a line is not UTF-8");
  return line.toString();
}

/** Reads one line. Throws a `supervisor_protocol` fault unless it is exactly an event of this chunk. */
export function readFrame(line: string, chunkId: string): WorkerEvent {
  const frame = parseObject(line);
  if (frame.chunk !== chunkId) throw brokenFrame("a line is not of this chunk");
  switch (frame.type) {
    case "started":
      return { kind: "case_started", ...readCase(frame) };
    case "ended":
      return { kind: "case_ended", ...readCase(frame), outcome: readOutcome(frame) };
    case "syntax_error":
    case "invalid_task":
      return {
        kind: frame.type,
        programId: readString(frame, "program"),
        detail: readString(frame, "detail"),
      };
    case "beat":
      return { kind: "beat" };
    case "summary":
      return { kind: "summary", end: readChunkEnd(frame) };
    default:
      throw brokenFrame("a line has an unknown type");
  }
}

type Frame = Readonly<Record<string, unknown>>;

function parseObject(line: string): Frame {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw brokenFrame("a line is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw brokenFrame("a line is not an object");
  }
  return value as Frame;
}

function readCase(frame: Frame): { programId: string; caseIndex: number } {
  return { programId: readString(frame, "program"), caseIndex: readCount(frame, "case") };
}

function readOutcome(frame: Frame): CaseOutcome {
  return {
    end: readEnd(frame),
    stdout: readStdout(frame),
    ...(frame.result === undefined ? {} : { result: readString(frame, "result") }),
    stderrTail: readString(frame, "stderr_tail"),
    wallMs: readMeasure(frame, "wall_ms"),
    cpuMs: readMeasure(frame, "cpu_ms"),
    peakRssKib: readMeasure(frame, "peak_rss_kib"),
  };
}

function readEnd(frame: Frame): CaseEnd {
  switch (frame.status) {
    case "exited": {
      const exitCode = readCount(frame, "exit_code");
      return { kind: "exited", exitCode };
    }
    case "signaled":
      return { kind: "signaled", signal: readString(frame, "signal") };
    case "time_limit":
    case "memory_limit":
    case "output_limit":
      return { kind: frame.status };
    case "invalid_test":
    case "starved":
    case "isolation_failed":
      return { kind: frame.status, detail: readString(frame, "detail") };
    default:
      throw brokenFrame("a case ended with an unknown status");
  }
}

/** Null when the output is not UTF-8, which is all that anyone needs to know of it. */
function readStdout(frame: Frame): string | null {
  if (frame.stdout === undefined && typeof frame.stdout_base64 === "string") return null;
  return readString(frame, "stdout");
}

function readChunkEnd(frame: Frame): ChunkEnd {
  switch (frame.reason) {
    case "completed":
    case "deadline":
    case "cancelled":
    case "superseded":
      return frame.reason;
    default:
      throw brokenFrame("the summary has an unknown reason");
  }
}

function readString(frame: Frame, name: string): string {
  const value = frame[name];
  if (typeof value !== "string") throw brokenFrame(`a line lacks the text "${name}"`);
  return value;
}

function readCount(frame: Frame, name: string): number {
  const value = frame[name];
  if (!Number.isSafeInteger(value) || (value as number) < 0)
    throw brokenFrame(`a line lacks the count "${name}"`);
  return value as number;
}

function readMeasure(frame: Frame, name: string): number {
  const value = frame[name];
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
    throw brokenFrame(`a line lacks the measure "${name}"`);
  }
  return value;
}

/** The worker says something that no supervisor says. */
export function brokenFrame(what: string): Fault {
  return new Fault("supervisor_protocol", `The worker broke the protocol: ${what}.`);
}
