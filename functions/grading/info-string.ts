/** What a fenced block's language means for the search of a program. */
export type LanguageRank = "python" | "unnamed" | "other";

/** `python`, `py3`, `python3.11`, `pypy3`, `ipython`, `python-exec`: Python 3 by any name that models give it. */
const PYTHON_NAME =
  /^(?:i?python|py|pypy)(?:3(?:\.\d{1,2})?)?(?:[-_](?:exec|execute|run|code|script|program|solution))?$/;

/** What nearly all fences have, and what is read of each without looking closer. */
const USUAL = new Map<string, LanguageRank>([
  ["", "unnamed"],
  ...["python", "Python", "python3", "py", "py3"].map((name) => [name, "python"] as const),
]);

/** Most others are one such word. */
const PLAIN_NAME = /^\w{0,20}$/;

/** Only the first word matters; no name that counts is anywhere near as long. */
const MAX_INFO_CHARACTERS = 256;

const ESCAPED = /\\([!-/:-@[-`{-~])|&#(?:x([0-9a-f]{1,6})|([0-9]{1,7}));/gi;

/**
 * Ranks a fenced block by its info string: the first word, lower-cased, without a leading `{` or `{.`, up to the
 * first `{`, `}`, `:` or `,`.
 */
export function rankLanguage(info: string): LanguageRank {
  const usual = USUAL.get(info);
  if (usual !== undefined) return usual;
  const name = PLAIN_NAME.test(info) ? info.toLowerCase() : readLanguage(info);
  if (name === "") return "unnamed";
  return isPythonName(name) ? "python" : "other";
}

/** Whether the word, in lower case, is a name of Python. */
export function isPythonName(word: string): boolean {
  return PYTHON_NAME.test(word);
}

function readLanguage(info: string): string {
  const start = info.search(/\S/);
  if (start < 0) return "";
  const text = unescapeMarkdown(info.slice(start, start + MAX_INFO_CHARACTERS)).trim();
  const word = text.split(/\s/, 1)[0] ?? "";
  const [, braced, bare] = /^(?:\{\.?([^}{:,]*)|([^{:,]*))/.exec(word.toLowerCase()) ?? [];
  return braced ?? bare ?? "";
}

/** Backslash escapes and numeric references, which CommonMark resolves in info strings. */
function unescapeMarkdown(text: string): string {
  return text.replace(ESCAPED, (_, character: string | undefined, hex?: string, decimal?: string) => {
    if (character !== undefined) return character;
    const codePoint = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    return codePoint > 0 && codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : "\ufffd";
  });
}
