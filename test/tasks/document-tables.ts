/** The rows of the table under this heading row, cell by cell, without the marks of code. */
export function rowsUnder(document: string, heading: string): string[][] {
  const [, table = ""] = document.split(`${heading}\n`);
  const lines = table.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("|"));
  return lines.slice(1, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replace(/^`(.*)`$/, "$1")),
  );
}
