/**
 * Lines and words of a text. Blanks are those of ASCII, so that what a comparison sees doesn't depend on anybody's
 * version of Unicode. Everything is one pass: a regular expression for blanks at line ends takes quadratic time on long
 * runs of them.
 */
const TAB = 9;
const LINE_FEED = 10;
const VERTICAL_TAB = 11;
const FORM_FEED = 12;
const CARRIAGE_RETURN = 13;
const SPACE = 32;

function isBlank(code: number): boolean {
  return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
}

/** The words between blanks. */
export function splitTokens(text: string): string[] {
  const tokens: string[] = [];
  let start = -1;
  for (let at = 0; at < text.length; at += 1) {
    if (isBlank(text.charCodeAt(at))) {
      if (start >= 0) tokens.push(text.slice(start, at));
      start = -1;
    } else if (start < 0) {
      start = at;
    }
  }
  if (start >= 0) tokens.push(text.slice(start));
  return tokens;
}

/**
 * The lines, without the blanks at their ends. A line ends with LF, CRLF or CR. Behind the last line end is one more
 * line, which may be empty.
 */
export function splitLines(text: string): string[] {
  const lines: string[] = [];
  let start = 0;
  /** Behind the last character of the line that is no blank. */
  let end = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === LINE_FEED || code === CARRIAGE_RETURN) {
      lines.push(text.slice(start, end));
      if (code === CARRIAGE_RETURN && text.charCodeAt(at + 1) === LINE_FEED) at += 1;
      start = at + 1;
      end = start;
    } else if (code !== SPACE && code !== TAB && code !== VERTICAL_TAB && code !== FORM_FEED) {
      end = at + 1;
    }
  }
  lines.push(text.slice(start, end));
  return lines;
}
