/**
 * Where an open fence ends.
 *
 * By CommonMark that is the next line with a run as long and nothing behind it. Two things that models write differ:
 * - Tokens of a chat template and closing tags behind the run leave it an end: "```<|im_end|>", "```</answer>".
 * - A block that may be Python ends where Python must have ended, and not before. Outside of its strings and comments no
 *   backtick is Python: a line that begins with a run ends the block whatever is behind it and however far it is
 *   indented, and so does a run at the end of a statement. A run inside a string that is closed later is part of the
 *   program: a docstring may show a fence.
 */
import { countRun, isSpaceOrTab } from "./block-markers.ts";
import { rankLanguage } from "./info-string.ts";
import { lineEndFrom, nextLine } from "./line-breaks.ts";
import type { LineCursor } from "./line-cursor.ts";
import { type OpenString, readPythonLine, skipUnseen } from "./python-lines.ts";

const LESS = 60;
const OPEN_BRACKET = 91;
const BACKTICK = 96;
const CODE_INDENT = 4;
const ASCII_END = 127;
/** Ends that may be looked for in vain, each over the rest of the text, so that time stays linear. */
const MOST_VAIN_LOOKS = 8;

/** What is behind a fence that ends a block in any language: tokens like `<|im_end|>`, `[/INST]` and closing tags. */
const CLOSING_TAIL =
  /^(?:[ \t]|<[|｜][^<>|｜\n]{1,40}[|｜]>|<\/[a-z][\w:.-]{0,40}>|\[\/?[A-Z]{1,20}\]|<(?:eos|end_of_turn)>)*$/i;

function mayBeginClosingTail(code: number): boolean {
  return isSpaceOrTab(code) || code === LESS || code === OPEN_BRACKET;
}

export interface OpenFence {
  readonly info: string;
  readonly lines: string[];
  readonly fenceCode: number;
  readonly fenceLength: number;
  readonly indent: number;
  /** Null where the block is in another language. */
  readonly python: PythonState | null;
}

export interface PythonState {
  /** The string that the next line begins in. */
  open: OpenString | null;
  /** Runs before this position are known to lie in strings. */
  stringsUntil: number;
}

export interface FenceEnd {
  /** What of the line is in front of the end; null where that is nothing. */
  readonly lastLine: string | null;
  /** What is behind it. */
  readonly tail: string;
}

const PLAIN_END: FenceEnd = { lastLine: null, tail: "" };

/** Of a block that may be Python; a run of tildes is Python, so only one of backticks tells where it ends. */
export function createPythonState(fenceCode: number): PythonState | null {
  return fenceCode === BACKTICK ? { open: null, stringsUntil: 0 } : null;
}

/** Of one text; reads its lines in order. */
export class FenceEnds {
  private readonly text: string;
  private vainLooks = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Reads a line of the fence, the cursor being behind its containers' markers; moves it over the fence's indent. */
  readLine(fence: OpenFence, cursor: LineCursor, isOutermost: boolean): FenceEnd | string {
    const { python } = fence;
    const plain = this.findPlainEnd(fence, cursor);
    const { end } = cursor;
    cursor.skipColumns(fence.indent);
    if (plain !== null && !(isOutermost && this.isInString(fence, end))) return plain;
    if (python === null) return cursor.rest();
    const line = cursor.rest();
    const { open, backticksAt } = readPythonLine(line, 0, line.length, python.open, fence.fenceLength);
    python.open = open;
    return (backticksAt < 0 ? null : endAt(line, backticksAt)) ?? line;
  }

  /** An end by CommonMark, or one with only tokens or closing tags behind it. */
  private findPlainEnd({ fenceCode, fenceLength }: OpenFence, cursor: LineCursor): FenceEnd | null {
    const { text } = this;
    const { nonspace, end } = cursor;
    if (cursor.indent >= CODE_INDENT || (cursor.code !== fenceCode && cursor.code <= ASCII_END)) return null;
    const at = skipUnseen(text, nonspace, end);
    const length = countRun(text, at, end, fenceCode);
    if (length < fenceLength) return null;
    if (at + length === end) return PLAIN_END;
    if (!mayBeginClosingTail(text.charCodeAt(at + length))) return null; // as an opening fence with a language
    const tail = text.slice(at + length, end);
    return CLOSING_TAIL.test(tail) ? { lastLine: null, tail } : null;
  }

  /** Whether the line that ends at `lineEnd` begins in a string that is closed before the program ends. */
  isInString({ fenceLength, python }: OpenFence, lineEnd: number): boolean {
    if (python === null || python.open === null) return false;
    if (lineEnd < python.stringsUntil) return true;
    if (this.vainLooks >= MOST_VAIN_LOOKS) return false;
    const { text } = this;
    let open: OpenString | null = python.open;
    let from = nextLine(text, lineEnd);
    while (from < text.length) {
      const end = lineEndFrom(text, from);
      const line = readPythonLine(text, from, end, open, fenceLength);
      if (line.backticksAt >= 0) {
        python.stringsUntil = from;
        return true;
      }
      open = line.open;
      from = nextLine(text, end);
    }
    this.vainLooks += 1;
    return false;
  }
}

/** The end at that place of a line; null where it is in the middle of something that is no Python anyway. */
function endAt(line: string, at: number): FenceEnd | null {
  const tail = line.slice(at + countRun(line, at, line.length, BACKTICK));
  if (skipUnseen(line, 0, at) === at) return { lastLine: null, tail };
  return CLOSING_TAIL.test(tail) ? { lastLine: line.slice(0, at), tail } : null;
}

const LANGUAGE_WORD = /^[ \t]*(?:\{\.?)?[A-Za-z][\w+#.-]*\}?[ \t]*$/;

/** Whether what is behind a run that ended a block opens the next one: its author forgot the end. */
export function opensAnother(tail: string): boolean {
  if (tail === "" || !LANGUAGE_WORD.test(tail)) return false;
  return !isSpaceOrTab(tail.charCodeAt(0)) || rankLanguage(tail) === "python";
}
