/**
 * Where an HTML block of CommonMark begins and ends. A fence that begins a line inside one ends it, unless the block
 * `hidesFences`: models are taught to write `<answer>` right above their program.
 *
 * `end` is what the block's last line contains; null means that a blank line ends the block. The bounds are those of
 * CommonMark 0.31 as its reference implementations read them: a lone closing tag of `pre`, `script`, `style` or
 * `textarea` begins a block too. One thing differs by rule: a reasoning tag that opens or ends no reasoning is text,
 * so that a stray `</think>` right above a program does not hide it.
 */
export interface HtmlBlockKind {
  readonly end: RegExp | null;
  readonly interruptsParagraph: boolean;
  /** Comments, declarations and the like: what is in them is not meant to be read. */
  readonly hidesFences: boolean;
}

const BLOCK_TAG_NAMES = [
  "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl",
  "dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main",
  "menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title",
  "tr|track|ul",
].join("|");

const hidden = { interruptsParagraph: true, hidesFences: true };

const STARTS: readonly { readonly start: RegExp; readonly kind: HtmlBlockKind }[] = [
  {
    start: /^<(?:script|pre|textarea|style)(?:[ \t>]|$)/i,
    kind: { end: /<\/(?:script|pre|textarea|style)>/i, interruptsParagraph: true, hidesFences: false },
  },
  { start: /^<!--/, kind: { end: /-->/, ...hidden } },
  { start: /^<\?/, kind: { end: /\?>/, ...hidden } },
  { start: /^<![A-Za-z]/, kind: { end: />/, ...hidden } },
  { start: /^<!\[CDATA\[/, kind: { end: /\]\]>/, ...hidden } },
  {
    start: new RegExp(`^</?(?:${BLOCK_TAG_NAMES})(?:[ \\t]|/?>|$)`, "i"),
    kind: { end: null, interruptsParagraph: true, hidesFences: false },
  },
];

const LONE_TAG: HtmlBlockKind = { end: null, interruptsParagraph: false, hidesFences: false };

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

/** Tags and tokens of chat templates, harmony's with the words between them. */
const TAGS = /(?:(?:<\/?[a-z][\w:.-]*[ \t]*>|<[|｜][^<>|｜\n]{1,40}[|｜]>(?:assistant|final)?)[ \t]*)+/iy;

/** Where the tags end that the text has at `from`, one behind the other; `from` where it has none. */
export function skipTags(text: string, from: number, end: number): number {
  const line = text.slice(from, end);
  return from + Math.max(0, matchEnd(TAGS, line, 0));
}
