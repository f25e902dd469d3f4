/**
 * What begins and ends reasoning, by the chat templates and recipes that have it:
 *
 * - `think`: DeepSeek-R1, Qwen3 and QwQ, GLM-4.5, Phi-4-reasoning, MiniMax-M1, Hunyuan
 * - `thinking`, `reasoning`, `thought`, `scratchpad`: formats that prompts ask for, and that GRPO recipes reward
 * - `seed:think`: Seed-OSS; `[THINK]`: Magistral; `◁think▷`: Kimi
 * - `<|begin_of_thought|>`: OpenThoughts, Sky-T1; `<|START_THINKING|>`: Command A Reasoning
 * - `<|channel|>analysis<|message|>`: gpt-oss (harmony); what ends it ends any message, so alone it says nothing
 */
interface ReasoningTag {
  readonly opener: string;
  readonly closer: string;
  /** Whether the closer tells that there was reasoning, where the prompt had its opener. */
  readonly speaksAlone: boolean;
}

const tag = (opener: string, closer: string, speaksAlone = true): ReasoningTag => ({
  opener,
  closer,
  speaksAlone,
});
const element = (name: string) => tag(`<${name}>`, `</${name}>`);

const KNOWN: readonly ReasoningTag[] = [
  ...["think", "thinking", "reasoning", "thought", "scratchpad", "seed:think"].map(element),
  tag("[THINK]", "[/THINK]"),
  tag("◁think▷", "◁/think▷"),
  tag("<|begin_of_thought|>", "<|end_of_thought|>"),
  tag("<|START_THINKING|>", "<|END_THINKING|>"),
  tag("<|channel|>analysis<|message|>", "<|end|>", false),
];

/** Names of a caller's own tags: those of XML, and no others. */
export const tagNamePattern = /^[A-Za-z][\w:.-]{0,63}$/;

export interface ReasoningTags {
  /** Finds what begins reasoning at a position, in any case; null where nothing does. */
  openerAt(text: string, position: number): { readonly end: number; readonly tag: ReasoningTag } | null;
  /** Position behind the first end of what `of` began, or of any reasoning; -1 where there is none. */
  closerFrom(text: string, position: number, of: ReasoningTag | null): number;
  /** Where a closer that speaks alone and ends at `end` begins; -1 where none does. */
  closerBefore(text: string, start: number, end: number): number;
}

const quote = (literal: string) => literal.replace(/[[\]|\\.]/g, "\\$&");
/** Without `u`, so that case is that of ASCII: with it the Kelvin sign is a `k`. */
const anyOf = (literals: readonly string[], flags: string) =>
  new RegExp(literals.map(quote).join("|"), flags);

export function reasoningTags(names: readonly string[]): ReasoningTags {
  return names.length === 0 ? KNOWN_TAGS : createTags([...KNOWN, ...names.map(element)]);
}

function createTags(tags: readonly ReasoningTag[]): ReasoningTags {
  const byOpener = new Map(tags.map((one) => [one.opener.toLowerCase(), one]));
  const first = new Set(tags.map(({ opener }) => opener.charCodeAt(0)));
  const openers = anyOf(
    tags.map(({ opener }) => opener),
    "iy",
  );
  const alone = tags.filter(({ speaksAlone }) => speaksAlone).map(({ closer }) => closer);
  const lastOfClosers = new Set(alone.map((closer) => closer.charCodeAt(closer.length - 1)));
  const longest = Math.max(...alone.map(({ length }) => length));
  const closersAtEnd = new RegExp(`(?:${alone.map(quote).join("|")})$`, "i");
  return {
    openerAt(text, position) {
      if (!first.has(text.charCodeAt(position))) return null;
      openers.lastIndex = position;
      const [opener] = openers.exec(text) ?? [];
      const found = opener === undefined ? undefined : byOpener.get(opener.toLowerCase());
      return found === undefined ? null : { end: openers.lastIndex, tag: found };
    },
    closerFrom(text, position, of) {
      const closers = anyOf(of === null ? alone : [of.closer], "gi");
      closers.lastIndex = position;
      return closers.test(text) ? closers.lastIndex : -1;
    },
    closerBefore(text, start, end) {
      if (end === start || !lastOfClosers.has(text.charCodeAt(end - 1))) return -1;
      const from = Math.max(start, end - longest);
      const found = closersAtEnd.exec(text.slice(from, end));
      return found === null ? -1 : from + found.index;
    },
  };
}

const KNOWN_TAGS = createTags(KNOWN);
