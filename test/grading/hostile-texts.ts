/**
 * Texts made to slow down whatever reads Markdown: deep nesting, marks without partners, looks ahead that fail late.
 */
export interface HostileText {
  readonly name: string;
  readonly text: string;
}

export function makeHostileTexts(characters: number): HostileText[] {
  const fill = (unit: string) => unit.repeat(Math.ceil(characters / unit.length)).slice(0, characters);
  /** One line of `unit`s that takes up half of the text, then lines for the other half. */
  const nest = (unit: string, lines: string) =>
    `${fill(unit).slice(0, characters / 2)}\n${fill(lines).slice(0, characters / 2)}`;
  const depth = Math.floor(Math.sqrt(characters));
  return Object.entries({
    "backticks on one line": fill("`"),
    "tildes on one line": fill("~"),
    "three backticks on every line": fill("```\n"),
    "opening fences that never close": fill("```py\n"),
    "alternating fences": fill("```\n~~~\n"),
    "fences with a backtick at the end": fill("``` a`\n"),
    "one backtick fence, backticks far apart": fill(`\`\`\`${" ".repeat(200)}`),
    "growing fences": Array.from({ length: Math.floor(Math.sqrt(characters * 2)) }, (_, i) =>
      "`".repeat(i),
    ).join("\n"),
    "glued fences": `\`\`\`py\n${fill("x```` y\n")}`,
    "nested quotes on one line": fill(">"),
    "nested quotes with spaces": fill("> "),
    "nested quotes on many lines": fill(`${"> ".repeat(depth)}\n`),
    "nested quotes, then lazy lines": nest("> ", "a\n"),
    "nested quotes, then blank lines": nest("> ", "\n"),
    "nested lists on one line": fill("- "),
    "nested lists that end in text": `${fill("- ")}a`,
    "nested lists, then blank lines": nest("- ", "\n"),
    "nested lists, then lazy lines": `${nest("- ", "a\n")}`,
    "nested list with a fence, then blank lines": nest("- ", "\n").replace("\n", "```\n"),
    "nested lists, then tabs": nest("- ", "\t"),
    "nested lists, then indented lines": nest("- ", `${" ".repeat(1_000)}x\n`),
    "nested lists, then blanks and blank lines": nest("- ", `${" ".repeat(50)}\n`),
    "lists one deeper on each line": Array.from({ length: depth }, (_, i) => `${"  ".repeat(i)}- a`).join(
      "\n",
    ),
    "lists and quotes in turn": fill("- > "),
    "lists and quotes in turn, then blank lines": nest("> - - - ", "\n"),
    "lists and quotes in turn, then quoted blanks": nest("- > ", ">\n"),
    "ordered lists on one line": fill("1. "),
    "almost thematic breaks": `${fill("* ")}a`,
    "two kinds of almost thematic breaks": fill("- * "),
    "wide gaps between bullets": fill(`-${" ".repeat(4)}`),
    "long numbers": fill("1"),
    hashes: fill("#"),
    underlines: fill("a\n===\n"),
    "equals signs": `a\n${fill("=")}x`,
    spaces: fill(" "),
    tabs: fill("\t"),
    "lines of spaces": fill(`${" ".repeat(99)}\n`),
    "line feeds": fill("\n"),
    "carriage returns": fill("\r"),
    "carriage returns, then a line feed": `${fill("a\r")}\n`,
    "carriage returns and line feeds": fill("\r\n"),
    "one long line": fill("a"),
    "short lines": fill("a\n"),
    "blank lines in a fence in a list": `- \`\`\`\n${fill("\n")}`,
    openers: fill("<think>"),
    "openers on lines": fill("<think>\n"),
    "closers on one line": fill("</think>"),
    "closers on lines": fill("</think>\n"),
    "closers behind text": fill("a </think> b\n"),
    "reasonings on one line": fill("<think></think>"),
    "reasonings between fences": fill("<think>\n</think>```\n"),
    "reasoning and an endless line": `${fill("<think></think>x ")}`,
    "half closers": fill("</thin"),
    "less-than signs": fill("<"),
    "opening tags": fill("<a "),
    "a tag with many attributes": `<a ${fill("b ")}`,
    "a tag with many equals signs": `<a ${fill("b=")}`,
    "a tag with an open quote": `<a ${fill("b='")}`,
    "a tag with blanks": `<a ${fill(" ")}`,
    "attributes on many lines": fill("<a b c='d' e\n"),
    "comments that don't end": fill("<!--\n"),
    "a comment full of ends": `<!-- \n${fill("--\n")}`,
    "script blocks": fill("<script>\n</script>\n"),
    "closing tags cut off": `<pre>\n${fill("</pre </")}`,
    declarations: fill("<!A\n"),
    "link reference definitions": fill("[a]: b\n"),
    brackets: fill("["),
    backslashes: `\`\`\`${fill("\\")}`,
    "references in an info string": `\`\`\`${fill("&#99;")}`,
    "lone surrogates": fill("\ud800\n"),
    "null characters": fill("\0"),
    "characters outside the basic plane": `\`\`\`py\n${fill("😀\n")}\`\`\``,
    "spaces in a program": `\`\`\`py\n${fill("    x  \n")}\`\`\``,
    "blanks in a program": `\`\`\`py\n${fill("\t \n")}\`\`\``,
    "many programs": fill("```py\nx\n```\n"),
  }).map(([name, text]) => ({ name, text }));
}
