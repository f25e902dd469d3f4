import { countRunBefore, trimBlanks } from "./block-markers.ts";
import type { FencedBlock } from "./fences.ts";
import { isPythonName, type LanguageRank, rankLanguage } from "./info-string.ts";
import { type BlockReader, type Reasoning, readAnswerBlocks } from "./reasoning.ts";

/** One chat message. Fields that are not here (tool calls, reasoning) are passed over, as are parts without text. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string | null | readonly ContentPart[];
}

export interface ContentPart {
  readonly type: string;
  readonly text?: unknown;
}

/** What a model produced: text, or a chat of which counts what the model said last. */
export type Completion = string | readonly ChatMessage[];

export interface ExtractionOptions {
  /** Which of several programs counts. */
  readonly extraction: "first" | "last";
  readonly reasoning: Reasoning;
}

export type NoProgramReason =
  | "no_fenced_block"
  | "unclosed_block"
  | "unclosed_reasoning"
  | "empty_block"
  | "too_large"
  | "not_text";

export type Extraction =
  | { readonly kind: "program"; readonly source: string }
  | { readonly kind: "no_program"; readonly reason: NoProgramReason };

/** Largest program in bytes of UTF-8, its final newline not counted. */
export const MAX_PROGRAM_BYTES = 65_536;

/** Largest text of a completion in bytes of UTF-8. A longer one is not read: it has no program that counts. */
export const MAX_COMPLETION_BYTES = 262_144;

const BLANKS_ONLY = /^[ \t\n\v\f\r]*$/;

/**
 * Takes the Python program out of a completion. Never throws; time is linear in the completion's length.
 *
 * Reasoning is left out first. Of the fenced blocks, those marked as Python are preferred to those without a
 * language; others never count. Among equals the first or the last is taken, whatever is in it. `source` has LF line
 * breaks and ends with one.
 */
export function extractProgram(completion: Completion, options: ExtractionOptions): Extraction {
  const text = readCompletionText(completion);
  if (text === null) return refuse("no_fenced_block");
  if (exceedsBytes(text, MAX_COMPLETION_BYTES)) return refuse("too_large");
  const choice = readAnswerBlocks(text, options.reasoning, () => new BlockChoice(options.extraction));
  if (choice === null) return refuse("unclosed_reasoning");
  const chosen = choice.chosen();
  return typeof chosen === "string" ? refuse(chosen) : readProgram(chosen);
}

function refuse(reason: NoProgramReason): Extraction {
  return { kind: "no_program", reason };
}

/** Whose messages are no model's, in the formats that trainers use. */
const OTHER_ROLES: ReadonlySet<string> = new Set([
  ...["system", "developer", "user", "human"],
  ...["tool", "tool_result", "function", "ipython", "environment", "observation"],
]);
/** Parts of a message that are text: of chats, and of OpenAI's responses. */
const TEXT_PARTS: ReadonlySet<string> = new Set(["text", "output_text"]);

/** What of a completion is read: its text, or that of the model's last message, null when that has none. */
export function readCompletionText(completion: Completion): string | null {
  if (typeof completion === "string") return completion;
  const last = completion.findLast(({ role }) => !OTHER_ROLES.has(role.toLowerCase()));
  const content = last?.content ?? "";
  if (typeof content === "string") return content === "" ? null : content;
  const texts = content.flatMap((part) =>
    TEXT_PARTS.has(part.type) && typeof part.text === "string" ? [part.text] : [],
  );
  return texts.join("") || null;
}

/** Which block counts. Any closed one goes before one without an end. */
class BlockChoice implements BlockReader {
  private readonly extraction: "first" | "last";
  private readonly best: Partial<Record<LanguageRank, readonly string[]>> = {};
  private isUnclosed = false;

  constructor(extraction: "first" | "last") {
    this.extraction = extraction;
  }

  take(block: FencedBlock): void {
    const { rank, program } = readLanguage(block);
    if (rank === "other") return;
    const lines = program.isClosed ? program.lines : cutAtGluedFence(program);
    if (lines === null) this.isUnclosed = true;
    else if (this.extraction === "last" || this.best[rank] === undefined) this.best[rank] = lines;
  }

  /** Its lines, or why there is none. */
  chosen(): readonly string[] | "unclosed_block" | "no_fenced_block" {
    const { best, isUnclosed } = this;
    return best.python ?? best.unnamed ?? (isUnclosed ? "unclosed_block" : "no_fenced_block");
  }
}

/** The block's language, which its first line may name where its fence doesn't; that line is not the program's then. */
function readLanguage(block: FencedBlock): { readonly rank: LanguageRank; readonly program: FencedBlock } {
  const rank = rankLanguage(block.info);
  const isNamedBelow = rank === "unnamed" && isPythonName((block.lines[0] ?? "").trim().toLowerCase());
  if (!isNamedBelow) return { rank, program: block };
  return { rank: "python", program: { ...block, lines: block.lines.slice(1) } };
}

/**
 * Lines of a block without a closing fence, up to the first one that ends in a fence: models put it right behind the
 * last statement. Null when no line does.
 */
function cutAtGluedFence(block: FencedBlock): readonly string[] | null {
  const { lines, fenceCode, fenceLength } = block;
  for (const [index, line] of lines.entries()) {
    const end = trimBlanks(line, 0, line.length);
    const run = countRunBefore(line, end, fenceCode);
    if (run >= fenceLength) return [...lines.slice(0, index), line.slice(0, end - run)];
  }
  return null;
}

function readProgram(lines: readonly string[]): Extraction {
  const source = lines.join("\n");
  if (BLANKS_ONLY.test(source)) return refuse("empty_block");
  if (!source.isWellFormed()) return refuse("not_text");
  if (exceedsBytes(source, MAX_PROGRAM_BYTES)) return refuse("too_large");
  return { kind: "program", source: `${source}\n` };
}

/** A text of UTF-16 has at most three bytes of UTF-8 a unit: most needn't be counted. */
function exceedsBytes(text: string, limitBytes: number): boolean {
  return text.length * 3 > limitBytes && Buffer.byteLength(text, "utf8") > limitBytes;
}
