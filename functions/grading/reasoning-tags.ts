/**
 * What begins and ends reasoning, by the chat templates and recipes that have it:
 *
 * - `think`: DeepSeek-R1, Qwen3 and QwQ, GLM-4.5, Phi-4-reasoning, MiniMax-M1, Hunyuan
 * - `thinking`, `reasoning`, `thought`, `scratchpad`: formats that prompts ask for, and that GRPO recipes reward
 * - `seed:think`: Seed-OSS; `[THINK]`: Magistral; `◁think▷`: Kimi
 * - `<|begin_of_thought|>`: OpenThoughts, Sky-T1; `<|START_THINKING|>`: Command A Reasoning
 * - `<|channel|>analysis<|message|>`: gpt-oss (harmony)
 *
 * A `template` may put the opener into the prompt: its closer alone says that there was reasoning, and its opener alone
 * that it was cut off. In a `format` that a prompt asks for, the model writes both and may forget either: one alone is text,
 * unless the caller says `opened`. What ends harmony's analysis ends any message of its, so a `channel`'s says nothing alone.
 */
export interface ReasoningTag {
  readonly opener: string;
  readonly closer: string;
  readonly kind: "template" | "format" | "channel";
}

const tag = (opener: string, closer: string, kind: ReasoningTag["kind"]): ReasoningTag => ({
  opener,
  closer,
  kind,
});
const element = (name: string, kind: ReasoningTag["kind"]) => tag(`<${name}>`, `</${name}>`, kind);
const KNOWN: readonly ReasoningTag[] = [
  element("think", "template"),
  element("seed:think", "template"),
  tag("[THINK]", "[/THINK]", "template"),
  tag("◁think▷", "◁/think▷", "template"),
  tag("<|begin_of_thought|>", "<|end_of_thought|>", "template"),
  tag("<|START_THINKING|>", "<|END_THINKING|>", "template"),
  ...["thinking", "reasoning", "thought", "scratchpad"].map((name) => element(name, "format")),
  tag("<|channel|>analysis<|message|>", "<|end|>", "channel"),
];

/** Names of a caller's own tags: those of XML, and no others. */
export const tagNamePattern = /^[A-Za-z][\w:.-]{0,63}$/;

export interface ReasoningTags {
  /** The opener at a position, in any case, and where it ends; null where there is none. */
  openerAt(text: string, position: number): { readonly tag: ReasoningTag; readonly end: number } | null;
  /** Position behind the tag's first closer from there; -1 where there is none. */
  closerOf(tag: ReasoningTag, text: string, position: number): number;
  /** The same of any reasoning that a prompt may have opened. */
  closerOfPrompt(text: string): number;
  /** Where a template's closer that ends at `end` begins; -1 where none does. */
  closerBefore(text: string, start: number, end: number): number;
}

/** Without `u`, so that case is that of ASCII: with it the Kelvin sign is a `k`. */
function anyOf(literals: readonly string[], flags: "iy" | "gi"): RegExp {
  return new RegExp(choose(literals), flags);
}

function choose(literals: readonly string[]): string {
  return literals.map((literal) => literal.replace(/[[\]|\\.]/g, "\\$&")).join("|");
}

export function reasoningTags(names: readonly string[]): ReasoningTags {
  if (names.length === 0) return KNOWN_TAGS;
  return createTags([...KNOWN, ...names.map((name) => element(name, "format"))]);
}

function createTags(tags: readonly ReasoningTag[]): ReasoningTags {
  const openers = anyOf(
    tags.map(({ opener }) => opener),
    "iy",
  );
  const firstCodes = new Set(tags.map(({ opener }) => opener.charCodeAt(0)));
  const byOpener = new Map(tags.map((one) => [one.opener.toLowerCase(), one]));
  const closers = new Map(tags.map((one) => [one, anyOf([one.closer], "gi")]));
  const closersOf = (kinds: readonly ReasoningTag["kind"][]) =>
    tags.flatMap(({ closer, kind }) => (kinds.includes(kind) ? [closer] : []));
  const ofPrompt = anyOf(closersOf(["template", "format"]), "gi");
  const alone = closersOf(["template"]);
  const aloneAtEnd = new RegExp(`(?:${choose(alone)})$`, "i");
  const lastCodes = new Set(alone.map((closer) => closer.charCodeAt(closer.length - 1)));
  const longest = Math.max(...alone.map(({ length }) => length));
  return {
    openerAt(text, position) {
      if (!firstCodes.has(text.charCodeAt(position))) return null;
      openers.lastIndex = position;
      const [opener] = openers.exec(text) ?? [];
      const found = opener === undefined ? undefined : byOpener.get(opener.toLowerCase());
      return found === undefined ? null : { tag: found, end: openers.lastIndex };
    },
    closerOf: (one, text, position) => findEnd(closers.get(one) as RegExp, text, position),
    closerOfPrompt: (text) => findEnd(ofPrompt, text, 0),
    closerBefore(text, start, end) {
      if (end === start || !lastCodes.has(text.charCodeAt(end - 1))) return -1;
      const from = Math.max(start, end - longest);
      const found = aloneAtEnd.exec(text.slice(from, end));
      return found === null ? -1 : from + found.index;
    },
  };
}

/** Position behind the first match at or behind `from`; -1 where there is none. */
function findEnd(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

const KNOWN_TAGS = createTags(KNOWN);
