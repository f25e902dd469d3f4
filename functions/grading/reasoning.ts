import { trimBlanks } from "./block-markers.ts";
import { type FencedBlock, FenceScanner } from "./fences.ts";
import { type ReasoningTags, reasoningTags } from "./reasoning-tags.ts";

/** `opened`: the prompt opened the reasoning. `auto`: the text may open it. `none`: tags are text. */
export type ReasoningMode = "auto" | "opened" | "none";

/** A mode; or one with names of tags that hold reasoning beside the known ones. */
export type Reasoning =
  | ReasoningMode
  | { readonly mode?: ReasoningMode | undefined; readonly tags: readonly string[] };

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;

/**
 * The fenced blocks of a text's answer, its reasoning left out; null when the reasoning does not end.
 *
 * An opener, such as `<think>`, at the start of a line outside a fenced block opens reasoning, and the first of its own
 * closers ends it; what is left out counts as a line break. A closer before any opener ends a reasoning that began with
 * the text, if it stands alone on its line, or at the end of a line outside a fenced block; only the first such one does.
 */
export function findAnswerBlocks(text: string, reasoning: Reasoning): FencedBlock[] | null {
  const { mode = "auto", tags: names } =
    typeof reasoning === "string" ? { mode: reasoning, tags: [] } : reasoning;
  const tags = reasoningTags(names);
  const start = mode === "opened" ? tags.closerFrom(text, 0, null) : 0;
  if (start < 0) return null;
  const lines = new LineBreaks(text);
  let blocks: FencedBlock[] = [];
  let scanner = new FenceScanner(text, (block) => blocks.push(block));
  let mayBeReasoning = mode === "auto";
  let position = start;
  while (position < text.length) {
    const opener = mode === "none" || scanner.isInOutermostFence ? null : tags.openerAt(text, position);
    if (opener !== null) {
      mayBeReasoning = false;
      const closerEnd = tags.closerFrom(text, opener.end, opener.tag);
      if (closerEnd < 0) return null;
      scanner.feedLine(position, position);
      position = closerEnd;
      continue;
    }
    const end = lines.findEnd(position);
    const isInFence = scanner.feedLine(position, end);
    if (mayBeReasoning && endsReasoning(tags, text, position, end, isInFence)) {
      mayBeReasoning = false;
      blocks = [];
      scanner = new FenceScanner(text, (block) => blocks.push(block));
    }
    position = lines.findNext(end);
  }
  scanner.finish();
  return blocks;
}

function endsReasoning(
  tags: ReasoningTags,
  text: string,
  start: number,
  end: number,
  isInFence: boolean,
): boolean {
  const closerStart = tags.closerBefore(text, start, trimBlanks(text, start, end));
  return closerStart >= 0 && (!isInFence || trimBlanks(text, start, closerStart) === start);
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
