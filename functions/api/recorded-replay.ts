/** Answers again from the record of an `Idempotency-Key`, as JSON or line by line, whichever way the first was. */
import { type RewardsContext, streamLines } from "./answer-lines.ts";
import type { LineWriter } from "./line-writer.ts";
import type { LogEvent } from "./log.ts";
import { readRecordedAnswer } from "./recorded-answer.ts";
import {
  type Detail,
  encodeAnswer,
  encodeResultLine,
  encodeSummaryLine,
  type Json,
} from "./rewards-answer.ts";

export async function sendRecorded(c: RewardsContext, record: Uint8Array, detail: Detail): Promise<Response> {
  const rewards: (number | null)[] = [];
  const results: Json[] = [];
  let usage: Json = {};
  for await (const part of readRecordedAnswer(record)) {
    if (part.kind === "usage") usage = part.usage;
    else {
      rewards[part.index] = part.sample.reward;
      results[part.index] = part.sample;
    }
  }
  const outcome = detail === "rewards" ? { faults: [] } : { results };
  return c.json(encodeAnswer(rewards, outcome, usage, c.get("requestId")));
}

export function streamRecorded(c: RewardsContext, log: LogEvent, record: Uint8Array): Response {
  return streamLines(c, log, (lines, gone) => tellRecorded(lines, gone, record, c.get("requestId")));
}

/** Writes the lines of a recorded answer, at the pace at which they are read. */
export async function tellRecorded(
  lines: LineWriter,
  gone: AbortSignal,
  record: Uint8Array,
  requestId: string,
): Promise<void> {
  const rewards: (number | null)[] = [];
  for await (const part of readRecordedAnswer(record)) {
    gone.throwIfAborted();
    if (part.kind === "usage") await lines.write(encodeSummaryLine(rewards, part.usage, requestId));
    else {
      rewards[part.index] = part.sample.reward;
      await lines.write(encodeResultLine(part.index, part.sample));
    }
  }
}
