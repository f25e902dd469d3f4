/**
 * Which lines of a text lie inside Python's string literals: as much of its lexical rules as tells a fence in a
 * docstring from the end of the program. Outside strings and comments no backtick is Python.
 */
import { countRun } from "./block-markers.ts";

const TAB = 9;
const DOUBLE_QUOTE = 34;
const HASH = 35;
const SINGLE_QUOTE = 39;
const BACKSLASH = 92;
const BACKTICK = 96;

/** The string that a line begins in: its quote, and how many of those end it. */
export interface OpenString {
  readonly quote: number;
  readonly length: 1 | 3;
}

export interface PythonLine {
  /** The string that goes on in the next line. */
  readonly open: OpenString | null;
  /** Where outside of strings and comments a run of at least so many backticks begins; -1 where none does. */
  readonly backticksAt: number;
}

/** Reads the line of `text` from `from` to `end`, which begins in `open`. Each character is looked at once or twice. */
export function readPythonLine(
  text: string,
  from: number,
  end: number,
  open: OpenString | null,
  leastBackticks: number,
): PythonLine {
  let inside = open;
  let position = from;
  while (position < end) {
    const code = text.charCodeAt(position);
    if (inside !== null) {
      if (code === BACKSLASH) position += 1;
      else if (code === inside.quote && endsString(text, position, end, inside)) {
        position += inside.length - 1;
        inside = null;
      }
    } else if (code === HASH) {
      return { open: null, backticksAt: -1 };
    } else if (code === SINGLE_QUOTE || code === DOUBLE_QUOTE) {
      const length = countRun(text, position, Math.min(end, position + 3), code) === 3 ? 3 : 1;
      inside = { quote: code, length };
      position += length - 1;
    } else if (code === BACKTICK) {
      const length = countRun(text, position, end, code);
      if (length >= leastBackticks) return { open: null, backticksAt: position };
      position += length - 1;
    }
    position += 1;
  }
  // A string of one quote goes on in the next line only behind a backslash, over which `position` went too far.
  return { open: inside?.length === 1 && position === end ? null : inside, backticksAt: -1 };
}

function endsString(text: string, position: number, end: number, { quote, length }: OpenString): boolean {
  return length === 1 || countRun(text, position, Math.min(end, position + 3), quote) === 3;
}

/** Characters that nobody sees before a fence: byte order mark, zero-width ones, word joiner, no-break spaces. */
const UNSEEN: ReadonlySet<number> = new Set([0xfeff, 0x200b, 0x200c, 0x200d, 0x2060, 0x00a0, 0x202f, 0x3000]);

/** First position at or behind `from` that is neither blank nor unseen. */
export function skipUnseen(text: string, from: number, end: number): number {
  let position = from;
  while (position < end && isUnseen(text.charCodeAt(position))) position += 1;
  return position;
}

function isUnseen(code: number): boolean {
  return code === 32 || code === TAB || UNSEEN.has(code);
}
