/**
 * The characters that open or end a block of CommonMark, looked at from the first non-blank character of a line
 * (`from`) to the line's end (`end`). Each function reads a character at most once.
 */
const TAB = 9;
const SPACE = 32;
const HASH = 35;
const PARENTHESIS = 41;
const STAR = 42;
const PLUS = 43;
const MINUS = 45;
const DOT = 46;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const BACKTICK = 96;
const TILDE = 126;

const MIN_FENCE = 3;
const MAX_HASHES = 6;
const MAX_LIST_DIGITS = 9;
const MIN_BREAK = 3;

/** Length of the run of `code` at `from`. */
export function countRun(text: string, from: number, end: number, code: number): number {
  let position = from;
  while (position < end && text.charCodeAt(position) === code) position += 1;
  return position - from;
}

/** Length of the run of `code` that ends just before `end`. */
export function countRunBefore(text: string, end: number, code: number): number {
  let position = end;
  while (position > 0 && text.charCodeAt(position - 1) === code) position -= 1;
  return end - position;
}

export function isSpaceOrTab(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** First position at or behind `from` that is neither space nor tab. */
export function skipBlanks(text: string, from: number, end: number): number {
  let position = from;
  while (position < end && isSpaceOrTab(text.charCodeAt(position))) position += 1;
  return position;
}

/** `from`, moved back to behind the last character that is neither space nor tab. */
export function trimBlanks(text: string, start: number, from: number): number {
  let position = from;
  while (position > start && isSpaceOrTab(text.charCodeAt(position - 1))) position -= 1;
  return position;
}

/** Length of an opening fence, 0 when there is none. The rest of a backtick fence's line holds no backtick. */
export function matchFence(text: string, from: number, end: number): number {
  const code = text.charCodeAt(from);
  const length = countRun(text, from, end, code);
  if (length < MIN_FENCE) return 0;
  if (code === TILDE) return length;
  for (let position = from + length; position < end; position += 1) {
    if (text.charCodeAt(position) === BACKTICK) return 0;
  }
  return length;
}

/** Whether the line is the underline of a heading: one run of `=` or `-`. */
export function isUnderline(text: string, from: number, end: number): boolean {
  const length = countRun(text, from, end, text.charCodeAt(from));
  return skipBlanks(text, from + length, end) === end;
}

export function isHeading(text: string, from: number, end: number): boolean {
  const length = countRun(text, from, Math.min(end, from + MAX_HASHES + 1), HASH);
  return length <= MAX_HASHES && (from + length === end || isSpaceOrTab(text.charCodeAt(from + length)));
}

/**
 * Looks for a thematic break: three or more of the character at `from`, and blanks, to the line's end. Answers -1
 * for one, else the position that proves that neither this one nor any later character before it begins one.
 */
export function findBreakFailure(text: string, from: number, end: number): number {
  const code = text.charCodeAt(from);
  let count = 0;
  for (let position = from; position < end; position += 1) {
    const current = text.charCodeAt(position);
    if (current === code) count += 1;
    else if (!isSpaceOrTab(current)) return position;
  }
  return count >= MIN_BREAK ? -1 : end;
}

/** `startsAtOne` holds for bullets too. */
export interface ListMarker {
  readonly length: number;
  readonly startsAtOne: boolean;
}

/** The list marker at `from`, followed by a blank or the line's end; null when there is none. */
export function matchListMarker(text: string, from: number, end: number): ListMarker | null {
  const code = text.charCodeAt(from);
  let length = 1;
  let startsAtOne = true;
  if (code !== MINUS && code !== PLUS && code !== STAR) {
    const digits = countDigits(text, from, Math.min(end, from + MAX_LIST_DIGITS + 1));
    const delimiter = from + digits < end ? text.charCodeAt(from + digits) : -1;
    if (digits === 0 || digits > MAX_LIST_DIGITS) return null;
    if (delimiter !== DOT && delimiter !== PARENTHESIS) return null;
    startsAtOne = Number(text.slice(from, from + digits)) === 1;
    length = digits + 1;
  }
  const next = from + length;
  return next === end || isSpaceOrTab(text.charCodeAt(next)) ? { length, startsAtOne } : null;
}

function countDigits(text: string, from: number, end: number): number {
  let position = from;
  while (position < end) {
    const code = text.charCodeAt(position);
    if (code < DIGIT_0 || code > DIGIT_9) break;
    position += 1;
  }
  return position - from;
}
