import { splitLines } from "./blanks.ts";

/** The text with LF between its lines, without blanks at line ends, and without blank lines at its end. */
export function normaliseText(text: string): string {
  const lines = splitLines(text);
  while (lines.at(-1) === "") lines.pop();
  return lines.join("\n");
}
