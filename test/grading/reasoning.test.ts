import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { extractProgram } from "../../functions/grading/extraction.ts";
import type { ReasoningMode } from "../../functions/grading/reasoning.ts";

const DRAFT = "```py\ndraft\n```\n";
const FINAL = "```py\nfinal\n```\n";

function extract(text: string, reasoning: ReasoningMode): string {
  const result = extractProgram(text, { extraction: "first", reasoning });
  return result.kind === "program" ? result.source.trim() : `[${result.reason}]`;
}

type Row = readonly [why: string, text: string, result: string];

describe("reasoning in the text", () => {
  it.each<Row>([
    ["is left out with its draft", `<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["may be in any case", `<THINK>\n${DRAFT}</Think>\n${FINAL}`, "final"],
    ["may follow other text", `Well.\n<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["may end anywhere in a line", `<think>${DRAFT}So</think>${FINAL}`, "final"],
    ["leaves a line break", `<think>a</think>${FINAL}`, "final"],
    ["may come twice", `<think>\n${DRAFT}</think>\n<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["may come twice on one line", `<think>a</think><think>\n${DRAFT}</think>${FINAL}`, "final"],
    ["may be empty", `<think></think>${FINAL}`, "final"],
    ["may have a draft that is not closed", `<think>\n\`\`\`py\ndraft\n</think>\n${FINAL}`, "final"],
    ["ends at its first closer", `<think>\n<think>\n</think>\n${DRAFT}</think>\n${FINAL}`, "draft"],
    ["keeps what was before it", `${DRAFT}<think>\n</think>\n${FINAL}`, "draft"],
    ["that does not end leaves nothing", `<think>\n${FINAL}`, "[unclosed_reasoning]"],
    ["that does not end voids what was before", `${FINAL}<think>\n`, "[unclosed_reasoning]"],
    [
      "may follow a fence that ended with its quote",
      `> \`\`\`\n<think>\n${DRAFT}</think>\n${FINAL}`,
      "final",
    ],
    ["may follow a fence that ended with its item", `- \`\`\`\n<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["ends the paragraph before it", "a\n<think>b</think>2. ```py\n   final\n   ```\n", "final"],
    ["ends the HTML before it", `<div>\n<think>b</think>${FINAL}`, "final"],
    ["in a list keeps the list", `- a\n<think></think>\n  ${FINAL.replaceAll("\n", "\n  ")}`, "final"],
    ["starts on a line after CR", `a\r<think>\r${DRAFT}</think>\r${FINAL}`, "final"],
  ])("%s", (_why, text, result) => {
    expect(extract(text, "auto")).toBe(result);
  });

  it.each<Row>([
    ["inside a line", `a <think>\n${FINAL}`, "final"],
    ["behind blanks", ` <think>\n${FINAL}`, "final"],
    ["in a quote", `> <think>\n\n${FINAL}`, "final"],
    ["in a program", "```py\n<think>\n```", "<think>"],
    ["in a program's string", "```py\nprint('''\n<think>\n''')\n```", "print('''\n<think>\n''')"],
    ["in a block of another language", `~~~\n<think>\n~~~\n${FINAL}`, "final"],
    ["with an attribute", `<think x>\n\n${FINAL}`, "final"],
    ["with a letter more", `<thinks>\n\n${FINAL}`, "final"],
    ["with the Kelvin sign", `<thin\u212a>\n\n${FINAL}`, "final"],
  ])("is not opened by a tag %s", (_why, text, result) => {
    expect(extract(text, "auto")).toBe(result);
  });
});

describe("reasoning that the prompt opened, unknown to us", () => {
  it.each<Row>([
    ["ends at a closer alone on its line", `${DRAFT}</think>\n${FINAL}`, "final"],
    ["ends at one with blanks around it", `${DRAFT} \t</THINK> \n${FINAL}`, "final"],
    ["ends at one alone inside a fence", `\`\`\`py\ndraft\n</think>\n${FINAL}`, "final"],
    ["ends at one alone at the text's end", `${DRAFT}</think>`, "[no_fenced_block]"],
    ["ends at one at a line's end", `${DRAFT}So it is.</think>\n${FINAL}`, "final"],
    ["ends at one at a quote's end", `${DRAFT}> So it is.</think> \n${FINAL}`, "final"],
    ["ends at one before CR LF", `${DRAFT}Done</think>\r\n${FINAL}`, "final"],
    ["does not end at a line's end in a fence", `\`\`\`py\nprint('</think>\n\`\`\`\n`, "print('</think>"],
    ["does not end inside a line", `${DRAFT}So </think> it is.\n${FINAL}`, "draft"],
    ["does not end on the line that opens a fence", "```py </think>\ndraft\n```\n", "draft"],
    ["ends once: a later closer is text", `a</think>\n${DRAFT}</think>\n${FINAL}`, "draft"],
    ["ends once: a later closer hides nothing", `a</think>\n</think>\n${DRAFT}`, "draft"],
    ["may be followed by more reasoning", `a</think>\n<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["is not seen behind an opener", `<think>\n</think>\n${DRAFT}</think>\n${FINAL}`, "draft"],
    ["is seen behind a tag that is no opener", `a <think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["is seen behind an opener in a fence", `~~~\n<think>\n~~~\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["is not ended by the Kelvin sign", `${DRAFT}</thin\u212a>\n${FINAL}`, "draft"],
  ])("%s", (_why, text, result) => {
    expect(extract(text, "auto")).toBe(result);
  });
});

describe("reasoning that the caller says was opened", () => {
  it.each<Row>([
    ["ends at the first closer", `${DRAFT}</think>\n${FINAL}`, "final"],
    ["ends inside a line", `${DRAFT}So </think>${FINAL}`, "final"],
    ["ends inside a fence", `\`\`\`py\nx </think>${FINAL}`, "final"],
    ["has no end", FINAL, "[unclosed_reasoning]"],
    ["has no end in an empty text", "", "[unclosed_reasoning]"],
    ["may be opened again", `<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["may be followed by more", `a</think>\n<think>\n${DRAFT}</think>\n${FINAL}`, "final"],
    ["may be followed by more without end", `a</think>\n<think>\n${FINAL}`, "[unclosed_reasoning]"],
    ["ends once", `a</think>\n${DRAFT}</think>\n${FINAL}`, "draft"],
  ])("%s", (_why, text, result) => {
    expect(extract(text, "opened")).toBe(result);
  });
});

describe("no reasoning", () => {
  it.each<Row>([
    ["leaves an opener", `<think>\n${DRAFT}</think>\n${FINAL}`, "draft"],
    ["leaves a lone closer", `${DRAFT}</think>\n${FINAL}`, "draft"],
    ["leaves an opener without closer", `<think>\n${FINAL}`, "final"],
    ["leaves other tags", `<thinking>\n${FINAL}`, "final"],
  ])("%s", (_why, text, result) => {
    expect(extract(text, "none")).toBe(result);
  });
});

describe("any reasoning", () => {
  const thought = fc
    .array(
      fc.constantFrom(
        "```",
        "~~~",
        "py",
        "\n",
        "\r\n",
        "> ",
        "- ",
        "<think>",
        "</",
        "think>",
        " ",
        "a",
        "    ",
      ),
      {
        maxLength: 30,
      },
    )
    .map((pieces) => pieces.join("").replaceAll("</think>", ""));
  const answer = fc.constantFrom(
    FINAL,
    "```py\nfinal```",
    "none",
    "> ```\n> x\n",
    "- a\n\n  ```\n  b\n  ```\n",
    "~~~\n",
  );

  it("changes nothing about the answer behind it", () => {
    fc.assert(
      fc.property(thought, answer, (thinking, text) => {
        const expected = extract(text, "none");
        expect(extract(`<think>${thinking}</think>${text}`, "auto")).toBe(expected);
        expect(extract(`${thinking}</think>${text}`, "opened")).toBe(expected);
      }),
      { numRuns: 3_000, seed: 13 },
    );
  });

  it("that is opened by the prompt ends at a lone closer, if nothing before it opens one", () => {
    fc.assert(
      fc.property(thought, answer, (thinking, text) => {
        const plain = thinking.replaceAll("<think>", "");
        expect(extract(`${plain}\n</think>\n${text}`, "auto")).toBe(extract(text, "none"));
      }),
      { numRuns: 3_000, seed: 14 },
    );
  });
});
