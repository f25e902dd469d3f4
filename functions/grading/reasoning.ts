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

/** Takes blocks one after the other; of a text with very many, few are worth keeping. */
export interface BlockReader {
  take(block: FencedBlock): void;
}

/**
 * Reads the fenced blocks of a text's answer, its reasoning left out; null when the reasoning does not end. `begin` makes
 * the reader that is returned, anew where what was read turns out to have been reasoning.
 *
 * An opener, such as `<think>`, at the start of a line outside a fenced block opens reasoning, and the first of its own
 * closers ends it; what is left out counts as a line break. A closer before any opener ends a reasoning that began with
 * the text, if it stands alone on its line, or at the end of a line outside a fenced block; only the first such one does,
 * and none that is a line of a program's string. How much one alone says depends on its kind.
 */
export function readAnswerBlocks<T extends BlockReader>(
  text: string,
  reasoning: Reasoning,
  begin: () => T,
): T | null {
  const { mode = "auto", tags: names } =
    typeof reasoning === "string" ? { mode: reasoning, tags: [] } : reasoning;
  const tags = reasoningTags(names);
  const start = mode === "opened" ? tags.closerOfPrompt(text) : 0;
  if (start < 0) return null;
  const lines = new LineBreaks(text);
  let reader = begin();
  let scanner = new FenceScanner(text, (block) => reader.take(block));
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
      reader = begin();
      scanner = new FenceScanner(text, (block) => reader.take(block));
    }
    position = nextLine(text, end);
  }
  scanner.finish();
  return reader;
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
