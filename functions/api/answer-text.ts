/**
 * The JSON of a whole answer, encoded sample by sample as results come, so that its size is known before its end. Samples
 * of one program come one after the other, with the same result: it is encoded once.
 */
import type { AnswerBytes, BatchAnswer, SampleResult } from "../rewards/batch.ts";
import { type Detail, encodeFault, encodeSample, encodeUsage } from "./rewards-answer.ts";

export interface AnswerText {
  /** To be told each sample's result, once. */
  add(index: number, result: SampleResult): void;
  /** What the text has by now; nothing of it is sent before it is finished. */
  bytes(): AnswerBytes;
  finish(answer: BatchAnswer, requestId: string): string;
}

export function createAnswerText(detail: Detail, samples: number): AnswerText {
  const texts = new Array<string | undefined>(samples);
  let last: { readonly result: SampleResult; readonly text: string; readonly bytes: number } | null = null;
  let bytes = 0;

  function encode(index: number, result: SampleResult): string | undefined {
    if (detail === "rewards")
      return result.kind === "fault" ? JSON.stringify(encodeFault(index, result)) : undefined;
    return JSON.stringify(encodeSample(result, detail));
  }

  return {
    add(index, result) {
      const isSame = last?.result === result && detail !== "rewards";
      const text = isSame ? last?.text : encode(index, result);
      texts[index] = text;
      if (text === undefined) return;
      const size = isSame && last !== null ? last.bytes : Buffer.byteLength(text) + 1;
      last = { result, text, bytes: size };
      bytes += size;
    },
    bytes: () => ({ total: bytes, unsent: bytes }),
    finish({ rewards, usage }, requestId) {
      const listed = texts.filter((text) => text !== undefined).join(",");
      const field = detail === "rewards" ? "faults" : "results";
      const rest = JSON.stringify({ usage: encodeUsage(usage), request_id: requestId });
      return `{"rewards":${JSON.stringify(rewards)},"${field}":[${listed}],${rest.slice(1)}`;
    },
  };
}
