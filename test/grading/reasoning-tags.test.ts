/** Tags of reasoning that published chat templates and recipes have, and those of a caller's own. */
import { describe, expect, it } from "vitest";
import { extractProgram } from "../../functions/grading/extraction.ts";
import type { Reasoning } from "../../functions/grading/reasoning.ts";

const draft = "```python\ndraft\n```\n";
const final = "```python\nfinal\n```";

function extract(text: string, reasoning: Reasoning = "auto"): string {
  const result = extractProgram(text, { extraction: "first", reasoning });
  return result.kind === "program" ? result.source.trim() : `[${result.reason}]`;
}

type Pair = readonly [opener: string, closer: string];
const element = (name: string): Pair => [`<${name}>`, `</${name}>`];

const ofTemplates: readonly Pair[] = [
  element("think"),
  element("seed:think"),
  ["[THINK]", "[/THINK]"],
  ["◁think▷", "◁/think▷"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
];
const ofFormats: readonly Pair[] = ["thinking", "reasoning", "thought", "scratchpad"].map(element);

describe.each([...ofTemplates, ...ofFormats])("%s", (opener, closer) => {
  it("holds reasoning, up to its own closer", () => {
    expect(extract(`${opener}\n${draft}${closer}\n${final}`)).toBe("final");
    expect(extract(`${opener.toUpperCase()}${draft}${closer.toLowerCase()}${final}`)).toBe("final");
    expect(extract(`${opener}\n${draft}</answer>\n[/OTHER]\n${closer}\n<answer>\n${final}`)).toBe("final");
  });

  it("may have been opened by the prompt", () => {
    expect(extract(`${draft}${closer}\n${final}`, "opened")).toBe("final");
    expect(extract(`${draft}${final}`, "opened")).toBe("[unclosed_reasoning]");
    expect(extract(`${draft}${closer}\n${final}`, "none")).toBe("draft");
  });

  it.each([opener, closer, `  ${closer}`, `${opener}\n${closer}`, `x ${closer}`])(
    "is text in a program: %s",
    (tag) => {
      for (const quotes of ['"""', "'''"]) {
        const program = `x = ${quotes}\n${tag}\n${quotes}\nprint(x)`;
        const text = `\`\`\`python\n${program}\n\`\`\`\n`;
        expect(extract(text)).toBe(program);
        expect(extract(`Text\n${text}\nText\n\n${draft}`)).toBe(program);
      }
    },
  );
});

describe.each(ofTemplates)("a template's %s", (opener, closer) => {
  it("says that there was reasoning, also alone", () => {
    expect(extract(`${opener}\n${draft}${final}`)).toBe("[unclosed_reasoning]");
    expect(extract(`Well.\n${draft}${closer}\n${final}`)).toBe("final");
    expect(extract(`${draft}${closer}`)).toBe("[no_fenced_block]");
  });

  it("does so behind a draft that was cut off, in a string too", () => {
    const cut = '```python\ndef f():\n    """Does\n';
    const whole = 'def f():\n    """Does it."""';
    expect(extract(`${cut}${closer}\n${final}`)).toBe("final");
    expect(extract(`${cut}${closer}\nSo:\n\`\`\`python\n${whole}\n\`\`\``)).toBe(whole);
  });
});

describe.each(ofFormats)("a format's %s", (opener, closer) => {
  it("is text where the other one is missing", () => {
    expect(extract(`${opener}\nHm.\n${final}`)).toBe("final");
    expect(extract(`${final}\n${closer}`)).toBe("final");
    expect(extract(`<answer>\n${final}\n</answer>\n${closer}\n`)).toBe("final");
    expect(extract(`${opener}\n${opener}\n${draft}${closer}\n${final}\n${opener}`)).toBe("final");
  });
});

describe("harmony's channels", () => {
  const analysis = `<|channel|>analysis<|message|>Hm.\n${draft}<|end|>`;

  it.each([
    `${analysis}<|start|>assistant<|channel|>final<|message|>${final}<|return|>`,
    `${analysis}<|start|>assistant<|channel|>final<|message|>Here:\n${final}`,
    `${analysis}\n${final}`,
  ])("leave the final one", (text) => {
    expect(extract(text)).toBe("final");
  });

  it("that are cut off leave no program", () => {
    expect(extract(analysis.replace("<|end|>", ""))).toBe("[unclosed_reasoning]");
  });

  it("are no reasoning where only a message ends", () => {
    expect(extract(`${draft}<|end|>\n${final}`)).toBe("draft");
  });
});

describe("tags of a caller's own", () => {
  it("hold reasoning beside the known ones", () => {
    const tags = ["plan", "a.b"];
    expect(extract(`<plan>\n${draft}</plan>\n${final}`)).toBe("draft");
    expect(extract(`<plan>\n${draft}</plan>\n${final}`, { tags })).toBe("final");
    expect(extract(`<a.b>\n${draft}</a.b>\n${final}`, { tags })).toBe("final");
    expect(extract(`<axb>\n${draft}</axb>\n${final}`, { tags })).toBe("draft");
    expect(extract(`<think>\n${draft}</think>\n${final}`, { tags })).toBe("final");
  });

  it("may have been opened by the prompt, or be text", () => {
    expect(extract(`${draft}</plan>\n${final}`, { mode: "opened", tags: ["plan"] })).toBe("final");
    expect(extract(final, { mode: "opened", tags: ["plan"] })).toBe("[unclosed_reasoning]");
    expect(extract(`<plan>\n${draft}</plan>\n${final}`, { mode: "none", tags: ["plan"] })).toBe("draft");
  });
});
