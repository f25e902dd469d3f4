import {
  findBreakFailure,
  isHeading,
  isUnderline,
  type ListMarker,
  matchFence,
  matchListMarker,
  skipBlanks,
} from "./block-markers.ts";
import { createPythonState, FenceEnds, type OpenFence, opensAnother } from "./fence-end.ts";
import { type HtmlBlockKind, matchHtmlBlockStart, skipTags } from "./html-blocks.ts";
import { rankLanguage } from "./info-string.ts";
import { LineCursor } from "./line-cursor.ts";
import { skipUnseen } from "./python-lines.ts";

/**
 * Fenced code blocks of a text by the block structure of CommonMark 0.31, found line by line.
 *
 * Theory of operation. A line first continues the open containers (block quotes and list items) from the outside in;
 * then the open leaf, if all containers went on; then it may open new containers and one leaf. A paragraph's text
 * may leave out markers (lazy continuation); everything else closes what the line did not continue. Only what can
 * hide or hold a fence is told apart: paragraphs, indented code, HTML blocks and fences. Headings and breaks end with
 * their line, and inline structure is never looked at.
 *
 * Time is linear on any text. A container costs a line at least half a character, except list items on a blank line,
 * which are passed in one step; nothing looks ahead over the same characters twice.
 *
 * What differs from CommonMark: `===` below a paragraph of nothing but link reference definitions ends it; U+0000 is
 * kept, since a program that holds one is to be judged as written; a reasoning tag is no HTML; a fence opens inside
 * HTML, behind tags, and behind characters that nobody sees; and where it ends is told in `fence-end.ts`.
 */
export interface FencedBlock {
  /** The opening line behind the fence, as written. */
  readonly info: string;
  /** Content without container prefixes and fence indent, one string a line. */
  readonly lines: readonly string[];
  /** False when the text or the block's container ended before a closing fence. */
  readonly isClosed: boolean;
  /** Code unit of the fence's character. */
  readonly fenceCode: number;
  readonly fenceLength: number;
}

type Leaf =
  | { readonly kind: "none" | "paragraph" | "indented_code" }
  | { readonly kind: "html"; readonly html: HtmlBlockKind }
  | { readonly kind: "fence"; readonly fence: OpenFence };

const NO_LEAF: Leaf = { kind: "none" };
const PARAGRAPH: Leaf = { kind: "paragraph" };
const INDENTED_CODE: Leaf = { kind: "indented_code" };

const HASH = 35;
const STAR = 42;
const MINUS = 45;
const LESS = 60;
const EQUALS = 61;
const GREATER = 62;
const UNDERSCORE = 95;
const BACKTICK = 96;
const TILDE = 126;
const ASCII_END = 127;

const CODE_INDENT = 4;
const MAX_MARKER_SPACES = 4;
/** Stands in `widths` for a block quote; for a list item it has the columns its content is indented by. */
const QUOTE = 0;

export class FenceScanner {
  private readonly text: string;
  private readonly cursor: LineCursor;
  private readonly onBlock: (block: FencedBlock) => void;
  private readonly fenceEnds: FenceEnds;
  /** Open containers, outermost first. */
  private readonly widths: number[] = [];
  /** Indexes of the block quotes in `widths`. */
  private readonly quotes: number[] = [];
  private leaf: Leaf = NO_LEAF;
  /** The innermost container is a list item with nothing in it yet: a blank line ends it. */
  private topIsEmptyItem = false;
  /** Before this position `breakCode` begins no thematic break on the current line. */
  private breakFailure = -1;
  private breakCode = -1;

  /** `onBlock` is called as each block ends, in order. */
  constructor(text: string, onBlock: (block: FencedBlock) => void) {
    this.text = text;
    this.cursor = new LineCursor(text);
    this.fenceEnds = new FenceEnds(text);
    this.onBlock = onBlock;
  }

  /** Whether a line that begins with neither white space nor a marker would be content of a fenced block. */
  get isInOutermostFence(): boolean {
    return this.leaf.kind === "fence" && this.widths.length === 0;
  }

  /** Whether the line that ends there, the last one fed, lies in a string of a program that closes it. */
  isInString(end: number): boolean {
    const isOutermost = this.widths.length === 0;
    return this.leaf.kind === "fence" && isOutermost && this.fenceEnds.isInString(this.leaf.fence, end);
  }

  /** Takes the text's next line, without its line break; true when the line belongs to a fenced block. */
  feedLine(start: number, end: number): boolean {
    const { cursor } = this;
    cursor.startLine(start, end);
    const matched = this.matchContainers();
    if (matched === this.widths.length) {
      const { leaf } = this;
      if (leaf.kind === "fence") {
        this.continueFence(leaf.fence);
        return true;
      }
      if (this.continueLeaf(leaf)) return false;
    } else if (this.leaf.kind !== "paragraph" || cursor.isBlank) {
      this.closeContainers(matched);
    }
    return cursor.isBlank ? false : this.openBlocks(matched);
  }

  /** Ends the text. */
  finish(): void {
    this.closeContainers(0);
  }

  /** How many of the open containers the line continues; the cursor is moved behind their prefixes. */
  private matchContainers(): number {
    const { cursor, widths, quotes } = this;
    let depth = 0;
    let quotesSeen = 0;
    while (depth < widths.length) {
      const width = widths[depth] ?? QUOTE;
      if (width === QUOTE) {
        if (cursor.code !== GREATER || cursor.indent >= CODE_INDENT) return depth;
        this.skipQuoteMarker();
        quotesSeen += 1;
        depth += 1;
      } else if (this.topIsEmptyItem && depth === widths.length - 1 && cursor.isBlank) {
        return depth;
      } else if (cursor.indent >= width) {
        cursor.skipColumns(width);
        depth += 1;
      } else if (cursor.isBlank) {
        cursor.skipIndent();
        // Items go on over a blank line, quotes don't.
        const stop = quotes[quotesSeen] ?? widths.length;
        depth = this.topIsEmptyItem && stop === widths.length ? stop - 1 : stop;
      } else {
        return depth;
      }
    }
    return depth;
  }

  /** Whether the line continues the open leaf (no fence) so that it opens nothing; a paragraph's line may. */
  private continueLeaf(leaf: Exclude<Leaf, { kind: "fence" }>): boolean {
    const { cursor } = this;
    switch (leaf.kind) {
      case "none":
        return false;
      case "paragraph":
        if (cursor.isBlank) this.leaf = NO_LEAF;
        return false;
      case "indented_code":
        if (cursor.isBlank || cursor.indent >= CODE_INDENT) return true;
        this.leaf = NO_LEAF;
        return false;
      case "html":
        if (!leaf.html.hidesFences && cursor.indent < CODE_INDENT && this.findFence() !== null) {
          this.leaf = NO_LEAF;
          return false;
        }
        if (leaf.html.end === null && cursor.isBlank) this.leaf = NO_LEAF;
        else this.continueHtml(leaf.html);
        return true;
    }
  }

  private continueFence(fence: OpenFence): void {
    const { indent } = this.cursor;
    const end = this.fenceEnds.readLine(fence, this.cursor, this.widths.length === 0);
    if (typeof end === "string") {
      fence.lines.push(end);
      return;
    }
    if (end.lastLine !== null) fence.lines.push(end.lastLine);
    this.endFence(fence, true);
    if (end.lastLine !== null || !opensAnother(end.tail)) return;
    const next = createFence(end.tail, fence.fenceCode, fence.fenceLength, indent);
    this.leaf = { kind: "fence", fence: next };
  }

  /** Opens what the rest of a line that is not blank opens; true when that is a fenced block. */
  private openBlocks(matchedContainers: number): boolean {
    const { cursor } = this;
    let matched = matchedContainers;
    while (cursor.indent < CODE_INDENT && !cursor.isBlank) {
      if (this.openLeaf(matched)) return this.leaf.kind === "fence";
      if (!this.openContainer(matched)) break;
      matched = this.widths.length;
    }
    // An open paragraph takes the line as its text, whatever container markers the line left out.
    if (cursor.isBlank || this.leaf.kind === "paragraph") return false;
    this.setLeaf(matched, cursor.indent >= CODE_INDENT ? INDENTED_CODE : PARAGRAPH);
    return false;
  }

  /** Opens a leaf other than a paragraph or indented code; one that ends with its line is over at once. */
  private openLeaf(matched: number): boolean {
    const { cursor, text } = this;
    const { code, nonspace, end } = cursor;
    switch (code) {
      case BACKTICK:
      case TILDE:
        return this.openFence(matched);
      case LESS:
        return this.openFence(matched) || this.openHtml(matched);
      case HASH:
        if (!isHeading(text, nonspace, end)) return false;
        break;
      case EQUALS:
        if (!this.continuesParagraph(matched) || !isUnderline(text, nonspace, end)) return false;
        break;
      case MINUS:
        if (this.continuesParagraph(matched) && isUnderline(text, nonspace, end)) break;
        if (!this.isBreak()) return false;
        break;
      case STAR:
      case UNDERSCORE:
        if (!this.isBreak()) return false;
        break;
      default:
        return code > ASCII_END && this.openFence(matched);
    }
    this.setLeaf(matched, NO_LEAF);
    return true;
  }

  /** The opening fence that the rest of the line is, behind tags or what nobody sees; null where it is none. */
  private findFence(): { readonly at: number; readonly length: number } | null {
    const { text } = this;
    const { code, nonspace, end } = this.cursor;
    const behind = code === LESS ? skipTags(text, nonspace, end) : nonspace;
    const at = code === BACKTICK || code === TILDE ? nonspace : skipUnseen(text, behind, end);
    const first = text.charCodeAt(at);
    if (at >= end || (first !== BACKTICK && first !== TILDE)) return null;
    const length = matchFence(text, at, end);
    return length === 0 ? null : { at, length };
  }

  private openFence(matched: number): boolean {
    const { cursor, text } = this;
    const found = this.findFence();
    if (found === null) return false;
    const { at, length } = found;
    const info = text.slice(at + length, cursor.end);
    const fence = createFence(info, text.charCodeAt(at), length, cursor.indent);
    this.setLeaf(matched, { kind: "fence", fence });
    return true;
  }

  private openHtml(matched: number): boolean {
    const { cursor, text } = this;
    const html = matchHtmlBlockStart(text.slice(cursor.nonspace, cursor.end));
    if (html === null || (!html.interruptsParagraph && this.leaf.kind === "paragraph")) return false;
    this.setLeaf(matched, { kind: "html", html });
    this.continueHtml(html);
    return true;
  }

  private openContainer(matched: number): boolean {
    const { cursor } = this;
    if (cursor.code === GREATER) {
      this.closeContainers(matched);
      this.quotes.push(this.widths.length);
      this.widths.push(QUOTE);
      this.topIsEmptyItem = false;
      this.skipQuoteMarker();
      return true;
    }
    const marker = matchListMarker(this.text, cursor.nonspace, cursor.end);
    if (marker === null || !this.mayBeginItem(marker, matched)) return false;
    this.closeContainers(matched);
    const outerIndent = cursor.indent;
    cursor.skipMarker(marker.length);
    const holdsCode = cursor.indent > MAX_MARKER_SPACES;
    const padding = holdsCode || cursor.isBlank ? 1 : cursor.indent;
    cursor.skipColumns(padding);
    this.widths.push(outerIndent + marker.length + padding);
    this.topIsEmptyItem = true;
    return true;
  }

  /** A paragraph is interrupted only by an item that counts from 1, if it counts, and is not empty. */
  private mayBeginItem(marker: ListMarker, matched: number): boolean {
    if (!this.continuesParagraph(matched)) return true;
    const { cursor, text } = this;
    return marker.startsAtOne && skipBlanks(text, cursor.nonspace + marker.length, cursor.end) < cursor.end;
  }

  /** Whether the line has all the markers that the open paragraph's own line had. */
  private continuesParagraph(matched: number): boolean {
    return this.leaf.kind === "paragraph" && matched === this.widths.length;
  }

  private isBreak(): boolean {
    const { code, nonspace, end } = this.cursor;
    if (code === this.breakCode && nonspace < this.breakFailure) return false;
    this.breakCode = code;
    this.breakFailure = findBreakFailure(this.text, nonspace, end);
    return this.breakFailure < 0;
  }

  private skipQuoteMarker(): void {
    this.cursor.skipMarker(1);
    this.cursor.skipColumns(1);
  }

  private continueHtml(html: HtmlBlockKind): void {
    const { cursor, text } = this;
    if (html.end?.test(text.slice(cursor.offset, cursor.end))) this.leaf = NO_LEAF;
  }

  private setLeaf(matched: number, leaf: Leaf): void {
    this.closeContainers(matched);
    this.leaf = leaf;
    this.topIsEmptyItem = false;
  }

  /** Ends the open leaf and all containers but the outer `count`. */
  private closeContainers(count: number): void {
    if (this.leaf.kind === "fence") this.endFence(this.leaf.fence, false);
    this.leaf = NO_LEAF;
    if (count === this.widths.length) return;
    this.widths.length = count;
    while ((this.quotes.at(-1) ?? -1) >= count) this.quotes.pop();
    this.topIsEmptyItem = false;
  }

  private endFence(fence: OpenFence, isClosed: boolean): void {
    this.leaf = NO_LEAF;
    const { info, lines, fenceCode, fenceLength } = fence;
    this.onBlock({ info, lines, isClosed, fenceCode, fenceLength });
  }
}

function createFence(info: string, fenceCode: number, fenceLength: number, indent: number): OpenFence {
  const python = rankLanguage(info) === "other" ? null : createPythonState(fenceCode);
  return { info, lines: [], fenceCode, fenceLength, indent, python };
}
