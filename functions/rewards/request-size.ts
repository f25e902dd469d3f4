/**
 * How many bytes a request to a worker takes: JSON in UTF-8, in which a control character has six. A request is never
 * larger than what is counted here, and hardly smaller.
 */
import type { PlannedProgram } from "./plan.ts";
import type { PreparedTask } from "./task.ts";

/** A request without programs: the names of its fields, a token, an id, a deadline. */
const emptyRequestBytes = 256;
/** A program without its texts: the names of its fields, its id, mode and limits, and which checker it has. */
const emptyProgramBytes = 256;
/** What stands around a text, and a checker's name. */
const aroundInputBytes = 3;
const aroundCheckerBytes = 32;

const shortEscapes: readonly number[] = [0x08, 0x09, 0x0a, 0x0c, 0x0d, 0x22, 0x5c];
/** Of each byte of a text, how many its escape has beyond it. */
const escapeBytes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (shortEscapes.includes(byte)) return 1;
  return byte < 0x20 ? 5 : 0;
});

/** The bytes of a text inside a JSON string, given its UTF-8. */
export function countEncoded(text: Uint8Array): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) bytes += escapeBytes[text[at] as number] as number;
  return bytes;
}

export interface RequestSize {
  bytes(): number;
  isEmpty(): boolean;
  /** What the program would add without inputs; its checker counts once in a request. */
  ofProgram(program: PlannedProgram): number;
  ofInput(task: PreparedTask, caseIndex: number): number;
  add(program: PlannedProgram, bytes: number): void;
}

/** Makes what adds up one request after the other. Texts that many programs share are counted once. */
export function createRequestSizes(): () => RequestSize {
  const inputs = new Map<PreparedTask, number[]>();
  const checkers = new Map<string, number>();

  function ofInput(task: PreparedTask, caseIndex: number): number {
    const known = inputs.get(task) ?? [];
    inputs.set(task, known);
    known[caseIndex] ??= countEncoded(Buffer.from(task.inputs[caseIndex] ?? "")) + aroundInputBytes;
    return known[caseIndex];
  }

  function ofChecker(checker: string): number {
    const bytes = checkers.get(checker) ?? countEncoded(Buffer.from(checker)) + aroundCheckerBytes;
    checkers.set(checker, bytes);
    return bytes;
  }

  return () => {
    let bytes = emptyRequestBytes;
    const named = new Set<string>();
    return {
      bytes: () => bytes,
      isEmpty: () => bytes === emptyRequestBytes,
      ofProgram({ source, task: { checker } }) {
        const isNew = checker !== null && !named.has(checker);
        return emptyProgramBytes + countEncoded(source) + (isNew ? ofChecker(checker) : 0);
      },
      ofInput,
      add({ task: { checker } }, more) {
        bytes += more;
        if (checker !== null) named.add(checker);
      },
    };
  };
}
