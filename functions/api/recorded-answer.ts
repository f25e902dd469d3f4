/**
 * An answer as it is recorded under its key: lines of JSON, gzipped while the batch is graded.
 *
 *   {"at":[0,7],"sample":{"reward":1,"status":"graded",…}}    once for samples that share a result, as they ended
 *   {"usage":{…}}                                              last
 *
 * Neither the text nor the results are kept meanwhile, so that the longest answers cost no more memory than their
 * compressed bytes.
 */
import { once } from "node:events";
import { createGunzip, createGzip, gunzipSync, gzipSync } from "node:zlib";
import { answerLimitBytes } from "../pool/batches/answer-parts.ts";
import type { BatchAnswer, SampleResult } from "../rewards/batch.ts";
import { type Detail, encodeSample, encodeUsage, type Json } from "./rewards-answer.ts";

export interface AnswerRecorder {
  /** To be told each sample's result, once. */
  add(index: number, result: SampleResult): void;
  /** The whole record; null when it is over `answerLimitBytes`. */
  finish(answer: BatchAnswer): Promise<Uint8Array | null>;
  /** Lets go of what is left; to be called in the end, whatever became of the batch. */
  discard(): void;
}

/** Text is handed to the compressor in pieces of about so many characters; a shorter answer at once, in the end. */
const pieceCharacters = 64 * 1024;
/** A record as short as this is inflated at once; it can't be more than 17 MB. */
const shortRecordBytes = 16 * 1024;

/** Records one answer. Results of one program come one after the other, as the same object. */
export function createAnswerRecorder(detail: Detail, limitBytes: number = answerLimitBytes): AnswerRecorder {
  let text = "";
  let last: { readonly at: number[]; readonly result: SampleResult } | null = null;
  let compressor: Compressor | null = null;
  let isTooLong = false;

  function writeLine(line: unknown): void {
    if (isTooLong) return;
    text += `${JSON.stringify(line)}\n`;
    if (text.length < pieceCharacters) return;
    compressor ??= createCompressor(limitBytes);
    isTooLong = !compressor.write(text);
    text = "";
  }

  function writeLast(): void {
    if (last !== null) writeLine({ at: last.at, sample: encodeSample(last.result, detail) });
    last = null;
  }

  return {
    add(index, result) {
      if (last?.result === result) return void last.at.push(index);
      writeLast();
      last = { at: [index], result };
    },
    async finish({ usage }) {
      writeLast();
      writeLine({ usage: encodeUsage(usage) });
      if (isTooLong) return null;
      const record = compressor === null ? gzipSync(text) : await compressor.end(text);
      return record === null || record.length > limitBytes ? null : record;
    },
    discard: () => compressor?.discard(),
  };
}

interface Compressor {
  /** False when what has come out is too long. */
  write(text: string): boolean;
  end(text: string): Promise<Buffer | null>;
  discard(): void;
}

function createCompressor(limitBytes: number): Compressor {
  const gzip = createGzip();
  const pieces: Buffer[] = [];
  let bytes = 0;

  function discard(): void {
    gzip.destroy();
    pieces.length = 0;
  }

  gzip.on("data", (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > limitBytes) discard();
    else pieces.push(piece);
  });
  return {
    write(text) {
      if (!gzip.destroyed) gzip.write(text);
      return !gzip.destroyed;
    },
    async end(text) {
      if (gzip.destroyed) return null;
      gzip.end(text);
      await once(gzip, "close"); // after the end, or when it came to be too long
      return bytes > limitBytes ? null : Buffer.concat(pieces);
    },
    discard,
  };
}

export type RecordedPart =
  | {
      readonly kind: "sample";
      readonly index: number;
      readonly sample: Json & { readonly reward: number | null };
    }
  | { readonly kind: "usage"; readonly usage: Json };

/** The parts of a recorded answer: all samples, in the order in which they ended, and last what it cost. */
export async function* readRecordedAnswer(record: Uint8Array): AsyncGenerator<RecordedPart> {
  for await (const line of linesOf(record)) {
    const part = JSON.parse(line);
    if (part.usage !== undefined) yield { kind: "usage", usage: part.usage };
    else for (const index of part.at) yield { kind: "sample", index, sample: part.sample };
  }
}

async function* linesOf(record: Uint8Array): AsyncGenerator<string> {
  let line: string[] = []; // one may be far longer than a piece
  for await (const piece of inflate(record)) {
    let from = 0;
    for (let to = piece.indexOf("\n"); to >= 0; to = piece.indexOf("\n", from)) {
      yield line.join("") + piece.slice(from, to);
      line = [];
      from = to + 1;
    }
    line.push(piece.slice(from));
  }
}

function inflate(record: Uint8Array): AsyncIterable<string> | Iterable<string> {
  if (record.length <= shortRecordBytes) return [gunzipSync(record).toString()];
  const text = createGunzip({ chunkSize: pieceCharacters }).setEncoding("utf8");
  text.end(record);
  return text;
}
