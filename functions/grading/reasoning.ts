import { trimBlanks } from "./block-markers.ts";
import { type FencedBlock, FenceScanner } from "./fences.ts";
import { LineBreaks, nextLine } from "./line-breaks.ts";
import { type ReasoningTag, type ReasoningTags, reasoningTags } from "./reasoning-tags.ts";

/** `opened`: the prompt opened the reasoning. `auto`: the text may open it. `none`: tags are text. */
export type ReasoningMode = "auto" | "opened" | "none";

/** A mode; or one with names of tags that hold reasoning beside the known ones. */
export type Reasoning =
  | ReasoningMode
  | { readonly mode?: ReasoningMode | undefined; readonly tags: readonly string[] };

/**
 * The fenced blocks of a text's answer, its reasoning left out; null when the reasoning does not end.
 *
 * An opener, such as `<think>`, at the start of a line outside a fenced block opens reasoning, and the first of its own
 * closers ends it; what is left out counts as a line break. A closer before any opener ends a reasoning that began with
 * the text, if it stands alone on its line, or at the end of a line outside a fenced block; only the first such one does,
 * and none that is a line of a program's string. How much one alone says depends on its kind.
 */
export function findAnswerBlocks(text: string, reasoning: Reasoning): FencedBlock[] | null {
  const { mode = "auto", tags: names } =
    typeof reasoning === "string" ? { mode: reasoning, tags: [] } : reasoning;
  const tags = reasoningTags(names);
  const start = mode === "opened" ? tags.closerOfPrompt(text) : 0;
  if (start < 0) return null;
  const lines = new LineBreaks(text);
  let blocks: FencedBlock[] = [];
  let scanner = new FenceScanner(text, (block) => blocks.push(block));
  let mayBeReasoning = mode === "auto";
  /** Openers that nothing behind them closes: text. */
  const unclosed = new Set<ReasoningTag>();
  let position = start;
  while (position < text.length) {
    const opener = mode === "none" || scanner.isInOutermostFence ? null : tags.openerAt(text, position);
    if (opener !== null && !unclosed.has(opener.tag)) {
      const closerEnd = tags.closerOf(opener.tag, text, opener.end);
      if (closerEnd >= 0) {
        mayBeReasoning = false;
        scanner.feedLine(position, position);
        position = closerEnd;
        continue;
      }
      if (opener.tag.kind !== "format") return null;
      unclosed.add(opener.tag);
    }
    const end = lines.findEnd(position);
    const isInFence = scanner.feedLine(position, end);
    if (mayBeReasoning && endsReasoning(tags, text, position, end, isInFence) && !scanner.isInString(end)) {
      mayBeReasoning = false;
      blocks = [];
      scanner = new FenceScanner(text, (block) => blocks.push(block));
    }
    position = nextLine(text, end);
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
