/**
 * Where an HTML block of CommonMark begins and ends. What is inside one is no fenced block.
 *
 * `end` is what the block's last line contains; null means that a blank line ends the block. The bounds are those of
 * CommonMark 0.31 as its reference implementations read them: a lone closing tag of `pre`, `script`, `style` or
 * `textarea` begins a block too. One thing differs by rule: a reasoning tag that opens or ends no reasoning is text,
 * so that a stray `</think>` right above a program does not hide it.
 */
export interface HtmlBlockKind {
  readonly end: RegExp | null;
  readonly interruptsParagraph: boolean;
}

const BLOCK_TAG_NAMES = [
  "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl",
  "dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main",
  "menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title",
  "tr|track|ul",
].join("|");

const STARTS: readonly { readonly start: RegExp; readonly kind: HtmlBlockKind }[] = [
  {
    start: /^<(?:script|pre|textarea|style)(?:[ \t>]|$)/i,
    kind: { end: /<\/(?:script|pre|textarea|style)>/i, interruptsParagraph: true },
  },
  { start: /^<!--/, kind: { end: /-->/, interruptsParagraph: true } },
  { start: /^<\?/, kind: { end: /\?>/, interruptsParagraph: true } },
  { start: /^<![A-Za-z]/, kind: { end: />/, interruptsParagraph: true } },
  { start: /^<!\[CDATA\[/, kind: { end: /\]\]>/, interruptsParagraph: true } },
  {
    start: new RegExp(`^</?(?:${BLOCK_TAG_NAMES})(?:[ \\t]|/?>|$)`, "i"),
    kind: { end: null, interruptsParagraph: true },
  },
];

const LONE_TAG: HtmlBlockKind = { end: null, interruptsParagraph: false };

/** The kind of HTML block that `line`, which begins with `<`, opens; null when it opens none. */
export function matchHtmlBlockStart(line: string): HtmlBlockKind | null {
  for (const { start, kind } of STARTS) {
    if (start.test(line)) return kind;
  }
  return isLoneTag(line) ? LONE_TAG : null;
}

const SLASH = 47;

const REASONING_TAG = /^<\/?think>[ \t]*$/i;
const CLOSING_TAG = /^<\/[a-z][a-z0-9-]*[ \t]*>[ \t]*$/i;
const TAG_NAME = /<[a-z][a-z0-9-]*/iy;
const ATTRIBUTE = /[ \t]+[a-z_:][\w.:-]*(?:[ \t]*=[ \t]*(?:[^ \t"'=<>`]+|'[^']*'|"[^"]*"))?/iy;
const TAG_END = /[ \t]*\/?>[ \t]*$/y;

/** Whether the line is one complete tag. Attribute by attribute, so that no backtracking spans the line. */
function isLoneTag(line: string): boolean {
  if (REASONING_TAG.test(line)) return false;
  if (line.charCodeAt(1) === SLASH) return CLOSING_TAG.test(line);
  let position = matchEnd(TAG_NAME, line, 0);
  if (position < 0) return false;
  for (let next = position; next >= 0; next = matchEnd(ATTRIBUTE, line, next)) position = next;
  return matchEnd(TAG_END, line, position) >= 0;
}

function matchEnd(sticky: RegExp, line: string, from: number): number {
  sticky.lastIndex = from;
  return sticky.test(line) ? sticky.lastIndex : -1;
}
