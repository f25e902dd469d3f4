/**
 * A completion while its batch waits for being planned: its bytes, outside of JavaScript's heap, where thousands of texts
 * cost the garbage collector nothing and keep nothing else alive. It is read once and then let go of.
 */
import { type Completion, readCompletionText } from "../grading/extraction.ts";

export interface HeldText {
  /** Null once it was taken. A text that has no UTF-8 stays as it is. */
  held: Buffer | string | null;
}

const withoutText: Completion = [{ role: "assistant", content: null }];

/** Holds the part of a completion that counts. */
export function holdCompletion(completion: Completion): HeldText | Completion {
  const text = readCompletionText(completion);
  if (text === null) return withoutText;
  return { held: text.isWellFormed() ? Buffer.from(text) : text };
}

/** The completion, for the last time where it was held. Throws when it was taken before: a batch is graded once. */
export function takeCompletion(completion: HeldText | Completion): Completion {
  if (typeof completion === "string" || !("held" in completion)) return completion;
  const { held } = completion;
  if (held === null) throw new Error("a completion was taken twice");
  completion.held = null;
  return typeof held === "string" ? held : held.toString();
}
