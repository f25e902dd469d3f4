import { trimBlanks } from "./block-markers.ts";
import { type FencedBlock, FenceScanner } from "./fences.ts";

/** `opened`: the prompt opened the reasoning. `auto`: the text may open it. `none`: tags are text. */
export type ReasoningMode = "auto" | "opened" | "none";

const OPENER = /<think>/iy;
const OPENER_LENGTH = "<think>".length;
const CLOSER = /<\/think>/iy;
const CLOSER_LENGTH = "</think>".length;
const LESS = 60;
const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

/**
 * The fenced blocks of a text's answer, its reasoning left out; null when the reasoning does not end.
 *
 * `<think>` (any case) at the start of a line outside a fenced block opens reasoning and the first `</think>` closes
 * it; what is left out counts as a line break. A `</think>` before any opener ends a reasoning that began with the
 * text, if it stands alone on its line, or at the end of a line outside a fenced block; only the first such one does.
 */
export function findAnswerBlocks(text: string, mode: ReasoningMode): FencedBlock[] | null {
  const start = mode === "opened" ? findCloserEnd(text, 0) : 0;
  if (start < 0) return null;
  const lines = new LineBreaks(text);
  let blocks: FencedBlock[] = [];
  let scanner = new FenceScanner(text, (block) => blocks.push(block));
  let mayBeReasoning = mode === "auto";
  let position = start;
  while (position < text.length) {
    if (mode !== "none" && !scanner.isInOutermostFence && hasTagAt(text, position, OPENER)) {
      mayBeReasoning = false;
      const closerEnd = findCloserEnd(text, position + OPENER_LENGTH);
      if (closerEnd < 0) return null;
      scanner.feedLine(position, position);
      position = closerEnd;
      continue;
    }
    const end = lines.findEnd(position);
    const isInFence = scanner.feedLine(position, end);
    if (mayBeReasoning && endsReasoning(text, position, end, isInFence)) {
      mayBeReasoning = false;
      blocks = [];
      scanner = new FenceScanner(text, (block) => blocks.push(block));
    }
    position = lines.findNext(end);
  }
  scanner.finish();
  return blocks;
}

function endsReasoning(text: string, start: number, end: number, isInFence: boolean): boolean {
  const trimmedEnd = trimBlanks(text, start, end);
  const closerStart = trimmedEnd - CLOSER_LENGTH;
  if (closerStart < start || !hasTagAt(text, closerStart, CLOSER)) return false;
  return !isInFence || trimBlanks(text, start, closerStart) === start;
}

/** `tag` is sticky; a regular expression, since lower-casing takes the Kelvin sign for a `k`. */
function hasTagAt(text: string, position: number, tag: RegExp): boolean {
  tag.lastIndex = position;
  return text.charCodeAt(position) === LESS && tag.test(text);
}

/** Position behind the first `</think>` at or behind `from`, -1 when there is none. */
function findCloserEnd(text: string, from: number): number {
  const closer = /<\/think>/gi;
  closer.lastIndex = from;
  return closer.test(text) ? closer.lastIndex : -1;
}

/** Line breaks of a text: LF, CR LF or CR. Each kind is searched for once, wherever the next one is. */
class LineBreaks {
  private readonly text: string;
  private nextLineFeed = -1;
  private nextCarriageReturn = -1;

  constructor(text: string) {
    this.text = text;
  }

  /** End of the line that `position` is on, its break excluded. Positions asked for never decrease. */
  findEnd(position: number): number {
    if (this.nextLineFeed < position) this.nextLineFeed = this.find("\n", position);
    if (this.nextCarriageReturn < position) this.nextCarriageReturn = this.find("\r", position);
    return Math.min(this.nextLineFeed, this.nextCarriageReturn);
  }

  /** Start of the line behind the one that ends at `end`. */
  findNext(end: number): number {
    const isPair =
      this.text.charCodeAt(end) === CARRIAGE_RETURN && this.text.charCodeAt(end + 1) === LINE_FEED;
    return end + (isPair ? 2 : 1);
  }

  private find(character: string, position: number): number {
    const found = this.text.indexOf(character, position);
    return found < 0 ? this.text.length : found;
  }
}
