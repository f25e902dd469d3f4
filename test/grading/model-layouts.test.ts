/** Layouts that models are taught, or that chat templates leave, around a program. */
import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Completion, extractProgram } from "../../functions/grading/extraction.ts";

/** The program's source, or the reason in brackets. */
function extract(completion: Completion, extraction: "first" | "last" = "first"): string {
  const result = extractProgram(completion, { extraction, reasoning: "auto" });
  return result.kind === "program" ? result.source : `[${result.reason}]`;
}

const program = "print(int(input()) * 2)\n";
const fenced = `\`\`\`python\n${program}\`\`\``;

describe("what stands right before a fence doesn't hide it", () => {
  it.each([
    ..."answer solution details div pre code section center table script style textarea output final_answer"
      .split(" ")
      .map((name) => `<${name}>\n`),
    "<details>\n<summary>Solution</summary>\n",
    '<div class="x">\n',
    "Text\n<answer>\n",
    "<answer>",
    "<answer> ",
    "<b><answer>",
    "</think>\n<answer>\n",
    "\ufeff",
    "\u200b",
    "\u00a0",
    "\u2060 ",
    "\ufeff\u00a0",
    "> <answer>\n> ",
  ])("%j", (before) => {
    const quoted = before.endsWith("> ") && before.startsWith("> ");
    const text = `${before}${quoted ? fenced.replaceAll("\n", "\n> ") : fenced}`;
    for (const behind of ["", "\n", "\n</answer>", "\n</details>\n\nDone."]) {
      expect(extract(`${text}${behind}`)).toBe(program);
    }
  });

  it.each(["<!-- \n", "<?php\n", "<![CDATA[\n", "    "])("but %j does", (before) => {
    expect(extract(`${before}${fenced}\n`)).not.toBe(program);
  });
});

const tails = [
  ..."<|im_end|> </s> </answer> <|endoftext|> <|eot_id|> </solution> </pre> <|end|> <end_of_turn> [/INST]".split(
    " ",
  ),
  "<|im_end|><|endoftext|>",
  "<｜end▁of▁sentence｜>",
  " <|im_end|>\n",
  "</answer></s>",
  "</answer>\n<|im_end|>",
  " This prints it.",
  " This prints it, and says `why`.",
  " -- done",
  ".",
  "\u200b",
  "\u00a0",
];

describe("what is glued to a closing fence doesn't keep it open", () => {
  it.each(tails)("%j", (tail) => {
    expect(extract(`${fenced}${tail}`)).toBe(program);
    expect(extract(`${fenced}${tail}\n\nOr:\n\n\`\`\`python\nother\n\`\`\`\n`)).toBe(program);
    expect(extract(`\`\`\`python\nother\n\`\`\`${tail}\n\nOr:\n\n${fenced}${tail}`, "last")).toBe(program);
    expect(extract(`1. Like this:\n   ${fenced.replaceAll("\n", "\n   ")}${tail}`)).toBe(program);
  });

  it.each(["    ", "\t", "      ", " \t", "\u00a0"])("nor does an indent of %j", (indent) => {
    const closed = `\`\`\`python\n${program}${indent}\`\`\``;
    expect(extract(closed)).toBe(program);
    expect(extract(`${closed}\nText\n\`\`\`python\nother\n\`\`\``)).toBe(program);
  });

  it("nor a statement, with another block behind it", () => {
    const glued = `\`\`\`python\n${program.trimEnd()}\`\`\``;
    expect(extract(`${glued}\nText\n\`\`\`python\nother\n\`\`\`\n`)).toBe(program);
    expect(extract(`${glued}<｜end▁of▁sentence｜>\n\n\`\`\`python\nother\n\`\`\`\n`)).toBe(program);
    expect(extract(`${glued}</answer>\n\n\`\`\`python\nother\n\`\`\`\n`)).toBe(program);
  });

  it.each(["", "python", "py title=x", "bash"])(
    "a block without end ends where the next one opens: %j",
    (info) => {
      const text = `\`\`\`python\n${program}\`\`\`${info === "" ? "text" : info}\nother\n\`\`\`\n`;
      expect(extract(text)).toBe(program);
    },
  );

  it("a block in another language ends by CommonMark, or before tokens", () => {
    for (const token of ["<|im_end|>", "<｜end▁of▁sentence｜>"])
      expect(extract(`\`\`\`json\n{}\n\`\`\`${token}\n${fenced}`)).toBe(program);
    expect(extract(`\`\`\`text\n\`\`\`python\nnot this\n\`\`\`\n${fenced}`)).toBe(program);
  });
});

describe("a fence in a string of the program", () => {
  const inStrings = [
    '"""\nUsage:\n```\nrun 3\n```\n"""\nprint(1)\n',
    'HELP = """\n```bash\nx\n```\n"""\nprint(1)\n',
    "def f():\n    '''Does it.\n\n    ```\n    f()\n    ```\n    '''\n",
    'x = """\n```\n"""\ny = """\n```\n"""\n',
    'print("""\n```python\nprint(1)\n```\n""")\n',
    "r = r'''\n```\n\\'''\n```\n'''\n",
    "s = '\\\n```'\n",
    '# """\nx = 1\n',
    "x = '''a''' # '''\n",
    "x = \"'''\"\n",
  ];

  it.each(inStrings)("does not end it: %j", (source) => {
    expect(extract(`Text\n\`\`\`python\n${source}\`\`\`\nText`)).toBe(source);
    expect(extract(`\`\`\`python\n${source}\`\`\`\n\nand\n\n\`\`\`python\nother\n\`\`\``)).toBe(source);
    expect(extract(`\`\`\`python\nother\n\`\`\`\nand\n\`\`\`\n\`\`\`python\n${source}\`\`\``, "last")).toBe(
      source,
    );
  });

  it("is the end where the string never ends", () => {
    const broken = '"""Never closed\nx = 1\n';
    expect(extract(`\`\`\`python\n${broken}\`\`\`\nText\n`)).toBe(broken);
    const right = 'def f():\n    """Doc."""\n    return 1\n';
    const text = `\`\`\`python\n${broken}\`\`\`\nI forgot the quotes:\n\`\`\`python\n${right}\`\`\`\n`;
    expect(extract(text)).toBe(broken);
    expect(extract(text, "last")).toBe(right);
  });

  it("is read as Python reads it: whatever Python compiles comes out whole", () => {
    const piece = fc.constantFrom(
      ...[
        '"""',
        "'''",
        '"',
        "'",
        "\\",
        "#",
        "x = 1",
        "print()",
        " ",
        "\n",
        "\n",
        "```",
        "```\n",
        "\n```\n",
        "r'a'",
        "f'''",
      ],
    );
    const sources = fc
      .sample(fc.array(piece, { minLength: 2, maxLength: 14 }), { numRuns: 6_000, seed: 9 })
      .map((pieces) => `${pieces.join("")}\n`)
      .filter((source) => source.includes("```"));
    const compiled = compilesInPython(sources);
    let whole = 0;
    sources.forEach((source, index) => {
      if (!compiled[index] || source.trim() === "") return;
      // A comment's end can't be told from a fence that is glued to it.
      if (/#.*```\s*$/m.test(source)) return;
      whole += 1;
      expect(extract(`\`\`\`python\n${source}\`\`\`\n`)).toBe(source);
    });
    expect(whole).toBeGreaterThan(60);
  });
});

function compilesInPython(sources: readonly string[]): boolean[] {
  const script = `
import json, sys, warnings
warnings.simplefilter("ignore")
def compiles(source):
    try:
        compile(source, "p", "exec")
        return True
    except (SyntaxError, ValueError):
        return False
print(json.dumps([compiles(source) for source in json.load(sys.stdin)]))`;
  const { stdout } = spawnSync("python3", ["-c", script], {
    input: JSON.stringify(sources),
    encoding: "utf8",
  });
  return JSON.parse(stdout);
}

describe("the language", () => {
  it.each([
    "python3.11",
    "pypy3",
    "ipython",
    "python-exec",
    "Python3.8",
    "PyPy",
    "ipython3",
    "python_code",
    "py3.12",
  ])("is Python: %s", (info) => {
    expect(extract(`\`\`\`\nother\n\`\`\`\n\`\`\`${info}\n${program}\`\`\``)).toBe(program);
  });

  it.each(["python2", "python2.7", "pypy2", "pycon", "cython", "python-repl"])(
    "is not Python 3: %s",
    (info) => {
      expect(extract(`\`\`\`${info}\n${program}\`\`\``)).toBe("[no_fenced_block]");
    },
  );

  it.each(["python", "Python", " python3 ", "py"])("may be the first line's: %j", (word) => {
    expect(extract(`\`\`\`\nother\n\`\`\`\n\`\`\`\n${word}\n${program}\`\`\``)).toBe(program);
  });

  it("is none where the first line is more than a word", () => {
    expect(extract("```\npython = 1\n```")).toBe("python = 1\n");
  });
});

describe("a chat", () => {
  const said = { role: "assistant", content: fenced };
  const other = "```python\nother\n```";

  it.each(["tool", "user", "system", "function", "ipython", "developer", "environment", "Tool"])(
    "is graded by what the model said last, whatever %s says after it",
    (role) => {
      expect(extract([{ role: "assistant", content: other }, said, { role, content: other }])).toBe(program);
      expect(extract([{ role, content: other }])).toBe("[no_fenced_block]");
    },
  );

  it("has text in parts of either kind", () => {
    const parts = [
      { type: "output_text", text: "Here:\n```python\n" },
      { type: "reasoning", text: other },
      { type: "text", text: `${program}\`\`\`` },
    ];
    expect(extract([{ role: "assistant", content: parts }])).toBe(program);
  });
});
