import { createRequire } from "node:module";
import fc from "fast-check";
import MarkdownIt from "markdown-it";
import { describe, expect, it } from "vitest";
import type { FencedBlock } from "../../functions/grading/fences.ts";
import { readAnswerBlocks } from "../../functions/grading/reasoning.ts";
import { isReadAlike, markdownDocument } from "./markdown-documents.ts";

interface SpecExample {
  readonly markdown: string;
  readonly html: string;
  readonly section: string;
  readonly number: number;
}

type Block = readonly [info: string, content: string];

const require = createRequire(import.meta.url);
const specExamples: readonly SpecExample[] = require("commonmark-spec").tests;

function scan(text: string): Block[] {
  const blocks: FencedBlock[] = [];
  readAnswerBlocks(text, "none", () => ({ take: (block) => blocks.push(block) }));
  return blocks.map((block) => [block.info.trim(), block.lines.map((line) => `${line}\n`).join("")]);
}

// Nothing is left out for being deep: the default limit of this mode is 20 levels.
const markdownIt = new MarkdownIt("commonmark", { maxNesting: 1_000 });

/** Its fenced blocks; null where it finds what is read otherwise here: a fence in HTML, or in what may be a program. */
function parseWithMarkdownIt(text: string): Block[] | null {
  const tokens = markdownIt.parse(text, {});
  const isOurs = ({ type, content }: { type: string; content: string }) =>
    (type === "fence" && content.includes("```")) || (type === "html_block" && /`{3}|~{3}/.test(content));
  if (tokens.some(isOurs)) return null;
  return tokens.filter((token) => token.type === "fence").map((token) => [token.info.trim(), token.content]);
}

/** Examples of the specification with an indented code block, which HTML does not tell from a fenced one. */
const INDENTED_CODE_EXAMPLES: ReadonlySet<number> = new Set([
  1, 2, 3, 5, 6, 7, 8, 18, 36, 48, 69, 85, 100, 107, 110, 111, 112, 114, 115, 116, 117, 118, 134, 183, 184,
  191, 211, 225, 231, 236, 252, 253, 254, 257, 264, 270, 271, 272, 273, 274, 286, 287, 288, 289, 290, 309,
  313,
]);

/** Examples that are read otherwise, and how: what models write goes before. */
const OTHERWISE: ReadonlyMap<number, readonly string[]> = new Map([
  [137, ["aaa\n"]], // a fence four columns in ends a program: it can't be one of its lines
  [147, ["", ""]], // so does one with text behind it; the last fence opens a block that does not end
  [161, ["int x = 33;\n"]], // a fence opens inside HTML
]);

describe("the CommonMark specification", () => {
  const rows = specExamples.map((example) => ({
    ...example,
    title: `${example.number}, ${example.section}`,
  }));

  it.each(rows)("has the same fenced blocks in example $title", ({ markdown, html, number }) => {
    const contents = scan(restoreTabs(markdown)).map(([, content]) => content);
    const theirs = INDENTED_CODE_EXAMPLES.has(number) ? [] : readCodeBlocks(number, html);
    const otherwise = OTHERWISE.get(number);
    expect(contents).toEqual(otherwise ?? theirs);
    if (otherwise !== undefined) expect(otherwise).not.toEqual(theirs);
  });

  it("has enough examples with a fenced block for that to mean something", () => {
    expect(specExamples.length).toBe(652);
    expect(specExamples.filter(({ markdown }) => scan(restoreTabs(markdown)).length > 0).length).toBe(36);
  });
});

/** Contents of an example's `<pre><code>` elements. Example 278 has an indented code block behind its fenced one. */
function readCodeBlocks(number: number, html: string): string[] {
  const blocks = [...restoreTabs(html).matchAll(/<pre><code[^>]*>([\s\S]*?)<\/code><\/pre>/g)];
  const contents = blocks.map(([, content = ""]) => unescapeHtml(content));
  return number === 278 ? contents.slice(0, 1) : contents;
}

function restoreTabs(text: string): string {
  return text.replaceAll("→", "\t");
}

function unescapeHtml(text: string): string {
  const characters: Record<string, string> = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&" };
  return text.replace(/&(?:lt|gt|quot|amp);/g, (entity) => characters[entity] ?? entity);
}

describe("markdown-it", () => {
  it("finds the same fenced blocks in generated documents", () => {
    const documents = fc.sample(markdownDocument, { numRuns: 40_000, seed: 20_240_617 }).filter(isReadAlike);
    const disagreements: { document: string; ours: Block[]; theirs: Block[] }[] = [];
    let [compared, blocks] = [0, 0];
    for (const document of documents) {
      const ours = scan(document);
      const theirs = parseWithMarkdownIt(document);
      if (theirs === null) continue;
      compared += 1;
      blocks += ours.length;
      if (JSON.stringify(ours) !== JSON.stringify(theirs)) disagreements.push({ document, ours, theirs });
    }
    console.log(`${compared} documents with ${blocks} fenced blocks compared with markdown-it`);
    expect(disagreements.sort((a, b) => a.document.length - b.document.length).slice(0, 5)).toEqual([]);
    expect(compared).toBeGreaterThanOrEqual(10_000);
    expect(blocks).toBeGreaterThanOrEqual(5_000);
  });
});

/** What the comparison with markdown-it leaves out; the blocks are those of commonmark.js, the reference. */
describe("documents that markdown-it reads otherwise than the reference implementation", () => {
  it.each<readonly [why: string, document: string, blocks: Block[]]>([
    ["a quote's marker four columns in is text", ">    \t`````\t\r     >``` \n", []],
    ["so is one behind an open quote", "  >   \t<!X\r     > ~~~\t\r\n    ~~~ ~~~\t\n", []],
    ["a quote ends before a marker that is code", "   > \t~~~\t\r\n\t\t>      `````\n", [["", ""]]],
    [
      "a wide line continues a list's paragraph",
      "   *  a\n   -   b\n  \t```\r\t\t```python\r",
      [["python", ""]],
    ],
    ["a wide tag continues it too", "> >   01. \t```\n   <b a=>\n 2. <?php\r\n", [["", ""]]],
    ["so does a wide quote's marker", " 01. x```\n\t> > <div\n12.     10.   = \n2. ``` py\n", [["py", ""]]],
    ["a tab's rest counts as spaces", "\t\t``` py\n  >\t``` py\r\n>\t \t``\n", [["py", "   \t``\n"]]],
    ["also on a blank line", ">`````\n >\t \t\r-  <script>\n", [["", "  \t\n"]]],
    ["a tab behind an item's marker makes code", "a\n> >  +  \t```\t\n", []],
  ])("%s", (_why, document, blocks) => {
    expect(scan(document)).toEqual(blocks);
  });
});
