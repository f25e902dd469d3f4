import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Completion,
  type ExtractionOptions,
  extractProgram,
  MAX_COMPLETION_BYTES,
  MAX_PROGRAM_BYTES,
  type NoProgramReason,
} from "../../functions/grading/extraction.ts";

const FIRST: ExtractionOptions = { extraction: "first", reasoning: "auto" };
const LAST: ExtractionOptions = { extraction: "last", reasoning: "auto" };

/** The program's source, or the reason in brackets. */
function extract(completion: Completion, options = FIRST): string {
  const result = extractProgram(completion, options);
  return result.kind === "program" ? result.source : `[${result.reason}]`;
}

function block(info: string, content: string, fence = "```"): string {
  return `${fence}${info}\n${content}\n${fence}\n`;
}

describe("the language of a fenced block", () => {
  it.each([
    ["python"],
    ["Python"],
    ["PYTHON3"],
    ["py"],
    ["py3"],
    [" python"],
    ["\tpython\t"],
    ['python title="a.py"'],
    ["python{.numberLines}"],
    ["python:main.py"],
    ["python,editable"],
    ["{python}"],
    ["{.python}"],
    ["{.python .x}"],
    ["{python, echo=FALSE}"],
    ["{.Py3 #id}"],
    ["pyth\\on".replace("\\o", "&#111;")],
    ["python\\:x"],
  ])("is Python for %j", (info) => {
    expect(extract(`${block("", "other")}${block(info, "x = 1")}`)).toBe("x = 1\n");
  });

  it.each([[""], [" "], [":x"], ["{}"], [",a"], ["{ .python }"], ["{.}"]])("is not said by %j", (info) => {
    expect(extract(block(info, "x = 1"))).toBe("x = 1\n");
    expect(extract(`${block(info, "x = 1")}${block("py", "y = 2")}`)).toBe("y = 2\n");
  });

  it.each([
    ["bash"],
    ["text"],
    ["json"],
    ["python2"],
    ["pycon"],
    ["pythonic"],
    ["python-repl"],
    [".python"],
    ["python}"],
    ["c python"],
    ["x".repeat(1_000)],
    ["ｐｙ"],
  ])("is another one for %j", (info) => {
    expect(extract(block(info, "x = 1"))).toBe("[no_fenced_block]");
  });
});

describe("which of several blocks counts", () => {
  const several = [
    block("bash", "pip"),
    block("", "plain 1"),
    block("py", "py 1"),
    block("python", "py 2"),
    block("", "plain 2"),
    block("json", "{}"),
  ];

  it("is the first or the last Python block, whatever has no language", () => {
    expect(extract(several.join("\n"))).toBe("py 1\n");
    expect(extract(several.join("\n"), LAST)).toBe("py 2\n");
  });

  it("is the first or the last block without a language when none is Python", () => {
    const text = [several[0], several[1], several[4], several[5]].join("\n");
    expect(extract(text)).toBe("plain 1\n");
    expect(extract(text, LAST)).toBe("plain 2\n");
  });

  it("is not changed by what is wrong with the block", () => {
    expect(extract(`${block("py", " ")}${block("py", "good")}`)).toBe("[empty_block]");
    expect(extract(`${block("py", "good")}${block("py", " ")}`, LAST)).toBe("[empty_block]");
    expect(extract(`${block("py", "x".repeat(MAX_PROGRAM_BYTES + 1))}${block("py", "good")}`)).toBe(
      "[too_large]",
    );
    expect(extract(`${block("py", "\ud800")}${block("", "good")}`)).toBe("[not_text]");
  });
});

describe("the source of a program", () => {
  it.each<readonly [why: string, text: string, source: string]>([
    ["LF", "```\na\nb\n```", "a\nb\n"],
    ["CR LF", "```python\r\nif a:\r\n  b\r\n```\r\n", "if a:\n  b\n"],
    ["CR", "```python\rif a:\r  b\r```\r", "if a:\n  b\n"],
    ["tildes", "~~~py\na\n```\n~~~", "a\n```\n"],
    ["a longer fence", "`````py\n```\n`````\n", "```\n"],
    ["a closing fence longer than the opening one", "```py\na\n``````", "a\n"],
    ["a closing fence with blanks", "```py\na\n   ``` \t\n", "a\n"],
    ["a fence's own indent", "   ```py\n   if a:\n     b\n c\n   ```", "if a:\n  b\nc\n"],
    ["a list item", "1. Do this:\n\n   ```py\n   if a:\n       b\n   ```\n", "if a:\n    b\n"],
    [
      "a nested list item with tabs",
      "- a\n\t- b\n\n\t\t```py\n\t\tif a:\n\t\t\tb\n\t\t```\n",
      "if a:\n\tb\n",
    ],
    ["a fence behind a list marker", "- ```py\n  a\n  ```", "a\n"],
    ["a quote", "> ```py\n> if a:\n>   b\n>```\n", "if a:\n  b\n"],
    ["a quote in a list", "- > ```py\n  > a\n  > ```\n", "a\n"],
    ["blank lines", "```py\n\na\n\n\nb\n\n```", "\na\n\n\nb\n\n"],
    [
      "blanks in a list item's blank line",
      "- ```\n  a = '''\n      \n  '''\n  ```\n",
      "a = '''\n    \n'''\n",
    ],
    ["a fence in a string", "```py\nprint('```')\n```\n", "print('```')\n"],
    ["a paragraph before it", "Text\n```py\na\n```", "a\n"],
    ["HTML that ended", "<div>\n\n```py\na\n```", "a\n"],
    ["U+0000", "```py\na\0\n```", "a\0\n"],
    ["a character pair", "```py\n'😀'\n```", "'😀'\n"],
    ["lone surrogates elsewhere", "\ud800\n```py\na\n```\n\udc00", "a\n"],
  ])("is right for %s", (_why, text, source) => {
    expect(extract(text)).toBe(source);
  });

  it.each<readonly [why: string, text: string]>([
    ["text", "print(1)"],
    ["nothing", ""],
    ["indented code", "    ```py\n    a\n    ```\n"],
    ["code in a line", "```print(1)```"],
    ["two backticks", "``\na\n``"],
    ["a fence in an HTML comment", "<!--\n```py\na\n```\n-->"],
    ["a fence in a comment", "<!--\n\n```py\na\n```\n-->"],
    ["blocks of other languages", block("sh", "a")],
    ["an unclosed block of another language", "```sh\na"],
  ])("is missing in %s", (_why, text) => {
    expect(extract(text)).toBe("[no_fenced_block]");
  });

  it.each([[""], ["\n"], ["   "], ["\t\n \f\n"]])("is missing in a block of blanks: %j", (content) => {
    expect(extract(`\`\`\`py\n${content}\n\`\`\``)).toBe("[empty_block]");
    expect(extract("```py\n```")).toBe("[empty_block]");
  });

  it.each<readonly [why: string, content: string, result: NoProgramReason | "program"]>([
    ["ASCII up to the limit", "x".repeat(MAX_PROGRAM_BYTES), "program"],
    ["ASCII over it", "x".repeat(MAX_PROGRAM_BYTES + 1), "too_large"],
    ["three-byte characters up to it", `x${"€".repeat(21_845)}`, "program"],
    ["three-byte characters over it", `xx${"€".repeat(21_845)}`, "too_large"],
    ["a blank last line, which counts", `${"x".repeat(MAX_PROGRAM_BYTES)}\n`, "too_large"],
  ])("is measured in UTF-8 without its final newline: %s", (_why, content, result) => {
    const extraction = extractProgram(block("py", content), FIRST);
    expect(extraction.kind === "program" ? "program" : extraction.reason).toBe(result);
  });
});

describe("a completion", () => {
  const limit = MAX_COMPLETION_BYTES;
  const code = block("py", "a");
  /** A program, and text behind it up to so many bytes. */
  const padded = (bytes: number) => code + "x".repeat(bytes - code.length);
  const message = (content: string | { type: string; text: string }[]) => ({ role: "assistant", content });
  const part = (text: string) => ({ type: "text", text });

  it.each<readonly [why: string, completion: Completion, result: string]>([
    ["text up to the limit", padded(limit), "a\n"],
    ["text over it", padded(limit + 1), "[too_large]"],
    ["text over it in bytes only", `${padded(limit - 1)}é`, "[too_large]"],
    ["a megabyte of backticks", "`".repeat(1_000_000), "[too_large]"],
    ["reasoning without end", `<think>${"x".repeat(limit)}`, "[too_large]"],
    ["a last message over it", [message(code), message(padded(limit + 1))], "[too_large]"],
    ["parts over it together", [message([part(padded(limit)), part("x")])], "[too_large]"],
    ["an earlier message over it", [message(padded(limit + 1)), message(code)], "a\n"],
  ])("is not read when it is too long: %s", (_why, completion, result) => {
    expect(extract(completion)).toBe(result);
  });
});

describe("a block without a closing fence", () => {
  it.each<readonly [why: string, text: string, result: string]>([
    ["ends at a fence behind a statement", "```py\na\nprint(1)```\ntext", "a\nprint(1)\n"],
    ["ends at the first of them", "```py\na```\nb```\n", "a\n"],
    ["ends at one with blanks behind it", "```py\nprint(1)``` \t\n", "print(1)\n"],
    ["ends at a longer one", "```py\nprint(1)`````\n", "print(1)\n"],
    ["does not end at a shorter one", "````py\nprint(1)```\n", "[unclosed_block]"],
    ["does not end at one of another kind", "~~~py\nprint(1)```\n", "[unclosed_block]"],
    ["ends at tildes", "~~~py\nprint(1)~~~\n", "print(1)\n"],
    ["does not end at one inside a line", "```py\nprint('```')\n", "[unclosed_block]"],
    ["has no end", "```py\nprint(1)\n", "[unclosed_block]"],
    ["has nothing in it", "```py", "[unclosed_block]"],
    ["has no language", "```\nprint(1)\n", "[unclosed_block]"],
    ["ends with its quote", "> ```py\n> a\n\ntext", "[unclosed_block]"],
    ["ends with its list item", "- ```py\n  a\n\ntext", "[unclosed_block]"],
    ["ends with its quote, glued", "> ```py\n> a```\n\ntext", "a\n"],
    ["opens behind a block that counts", "```py\na\n```\n\n```py\nb\n", "a\n"],
    ["opens behind one without a language", "```\na\n```\n\n```py\nb\n", "a\n"],
    ["is followed by one that counts", "> ```py\n> a\n\n```py\nb\n```\n", "b\n"],
  ])("%s", (_why, text, result) => {
    expect(extract(text)).toBe(result);
  });

  it("counts as the last block when it is glued", () => {
    expect(extract("```py\na\n```\n\n```py\nb```\n", LAST)).toBe("b\n");
  });
});

describe("a chat", () => {
  const text = block("py", "a");
  const other = block("py", "other");

  it.each<readonly [why: string, completion: Completion, result: string]>([
    ["of one message", [{ role: "assistant", content: text }], "a\n"],
    [
      "of which the last message counts",
      [
        { role: "assistant", content: other },
        { role: "assistant", content: text },
      ],
      "a\n",
    ],
    [
      "of which the model's last message has no program",
      [
        { role: "assistant", content: text },
        { role: "assistant", content: "Thanks" },
      ],
      "[no_fenced_block]",
    ],
    [
      "with text in parts",
      [
        {
          role: "assistant",
          content: [
            { type: "text", text: "```py\na" },
            { type: "image_url" },
            { type: "text", text: "b\n```" },
            { type: "reasoning", text: "```" },
          ],
        },
      ],
      "ab\n",
    ],
    ["without content", [{ role: "assistant", content: null }], "[no_fenced_block]"],
    ["with empty content", [{ role: "assistant", content: "" }], "[no_fenced_block]"],
    ["without parts", [{ role: "assistant", content: [] }], "[no_fenced_block]"],
    ["without text parts", [{ role: "assistant", content: [{ type: "image_url" }] }], "[no_fenced_block]"],
    [
      "with a text part that is no text",
      [{ role: "assistant", content: [{ type: "text", text: 1 }] }],
      "[no_fenced_block]",
    ],
  ])("%s", (_why, completion, result) => {
    expect(extract(completion)).toBe(result);
  });

  it("without text has no block, even if its prompt opened the reasoning", () => {
    const options: ExtractionOptions = { extraction: "first", reasoning: "opened" };
    expect(extract([{ role: "assistant", content: null }], options)).toBe("[no_fenced_block]");
  });
});

describe("any text", () => {
  const anyText = fc.oneof(
    fc.string({ unit: "binary", maxLength: 200 }),
    fc
      .array(
        fc.constantFrom(
          "```",
          "~~~",
          "py",
          "\n",
          "\r",
          "> ",
          "- ",
          "<think>",
          "</think>",
          " ",
          "\t",
          "\ud800",
          "a",
        ),
        {
          maxLength: 60,
        },
      )
      .map((pieces) => pieces.join("")),
  );

  it("gives a program that is text, is not blank, ends in a newline and fits, or a reason", () => {
    fc.assert(
      fc.property(
        anyText,
        fc.constantFrom("first", "last"),
        fc.constantFrom("auto", "opened", "none"),
        (text, extraction, reasoning) => {
          const result = extractProgram(text, { extraction, reasoning });
          if (result.kind === "no_program") return;
          expect(result.source).toMatch(/\S[\s\S]*\n$/);
          expect(result.source).not.toMatch(/\r|\p{Surrogate}/u);
        },
      ),
      { numRuns: 5_000, seed: 11 },
    );
  });

  it("of a program comes back whole from a fence that is longer than any in it", () => {
    const program = fc.string({
      unit: fc.constantFrom("`", "~", " ", "\n", "a", "\t", ">", "-", "é", "😀", "<"),
      minLength: 1,
    });
    fc.assert(
      fc.property(program, (source) => {
        fc.pre(source.trim() !== "");
        expect(extract(`Text:\n${block("python", source, "`".repeat(source.length + 3))}Bye`)).toBe(
          `${source}\n`,
        );
      }),
      { numRuns: 2_000, seed: 12 },
    );
  });
});
