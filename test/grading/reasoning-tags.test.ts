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

const pairs: readonly (readonly [opener: string, closer: string])[] = [
  ..."think thinking reasoning thought scratchpad seed:think"
    .split(" ")
    .map((name) => [`<${name}>`, `</${name}>`] as const),
  ["[THINK]", "[/THINK]"],
  ["◁think▷", "◁/think▷"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
];

describe.each(pairs)("%s", (opener, closer) => {
  it("holds reasoning, up to its own closer", () => {
    expect(extract(`${opener}\n${draft}${closer}\n${final}`)).toBe("final");
    expect(extract(`${opener.toUpperCase()}${draft}${closer.toLowerCase()}${final}`)).toBe("final");
    expect(extract(`${opener}\n${draft}</answer>\n[/OTHER]\n${closer}\n<answer>\n${final}`)).toBe("final");
  });

  it("without an end leaves no program", () => {
    expect(extract(`${opener}\n${draft}${final}`)).toBe("[unclosed_reasoning]");
  });

  it("may have been opened by the prompt", () => {
    expect(extract(`Well.\n${draft}${closer}\n${final}`)).toBe("final");
    expect(extract(`Well.\n${draft}So ${closer} ${final}`, "opened")).not.toBe("draft");
    expect(extract(`${draft}${closer}\n${final}`, "none")).toBe("draft");
  });

  it("is text in a program", () => {
    const program = `x = """\n${opener}\n"""`;
    expect(extract(`\`\`\`python\n${program}\n\`\`\`\n${draft}`)).toBe(program);
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
