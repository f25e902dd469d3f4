/**
 * Values as Python's `repr` writes them: some datasets keep their tests in that form. Nothing is evaluated.
 */
import { JsonInteger, type JsonValue } from "../grading/json-value.ts";

export type LiteralReading =
  | { readonly kind: "value"; readonly value: JsonValue }
  | { readonly kind: "invalid"; readonly detail: string };

class LiteralError extends Error {}

const MAX_DEPTH = 100;
const names: ReadonlyMap<string, JsonValue> = new Map<string, JsonValue>([
  ["None", null],
  ["True", true],
  ["False", false],
]);
const escapes: Readonly<Record<string, string>> = {
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
  "\n": "",
};
/** Digits of an escape by its letter. */
const hexEscapes: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const NUMBER = /[+-]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?/y;
const NAME = /[A-Za-z_]+/y;
const BLANKS = /[ \t\r\n\f]*/y;

/**
 * Reads a text that is one Python literal of dictionaries with texts as keys, lists, tuples (read as lists), texts,
 * numbers, `True`, `False` and `None`. Time is linear in its length.
 *
 * @param maxValues A text with more values than that is invalid.
 */
export function readPythonLiteral(text: string, maxValues = Number.POSITIVE_INFINITY): LiteralReading {
  try {
    return { kind: "value", value: new LiteralReader(text, maxValues).readDocument() };
  } catch (error) {
    if (error instanceof LiteralError) return { kind: "invalid", detail: error.message };
    throw error;
  }
}

class LiteralReader {
  private readonly text: string;
  private position = 0;
  private leftValues: number;

  constructor(text: string, maxValues: number) {
    this.text = text;
    this.leftValues = maxValues;
  }

  readDocument(): JsonValue {
    const value = this.readValue(0);
    if (this.position < this.text.length) throw this.fail("unexpected text after the value");
    return value;
  }

  /** Passes over the blanks around it. */
  private readValue(depth: number): JsonValue {
    if (depth > MAX_DEPTH) throw this.fail(`nested deeper than ${MAX_DEPTH} levels`);
    this.leftValues -= 1;
    if (this.leftValues < 0) throw this.fail("more values than are read here");
    this.match(BLANKS);
    const value = this.readBareValue(depth);
    this.match(BLANKS);
    return value;
  }

  private readBareValue(depth: number): JsonValue {
    const character = this.text.charAt(this.position);
    if (character === "{") return this.readDictionary(depth);
    if (character === "[") return this.readItems("]", depth);
    if (character === "(") return this.readItems(")", depth);
    if (character === "'" || character === '"') return this.readText();
    const number = this.match(NUMBER);
    if (number !== "") return readNumber(number);
    const start = this.position;
    const value = names.get(this.match(NAME));
    if (value === undefined) throw this.fail("expected a literal", start);
    return value;
  }

  private readDictionary(depth: number): JsonValue {
    const members = new Map<string, JsonValue>();
    this.position += 1;
    this.match(BLANKS);
    while (!this.take("}")) {
      const start = this.position;
      const key = this.readValue(depth + 1);
      if (typeof key !== "string") throw this.fail("expected a text as key", start);
      if (!this.take(":")) throw this.fail("expected ':'");
      members.set(key, this.readValue(depth + 1));
      if (!this.take(",") && this.text.charAt(this.position) !== "}") throw this.fail("expected ',' or '}'");
      this.match(BLANKS);
    }
    return members;
  }

  private readItems(close: "]" | ")", depth: number): JsonValue {
    const items: JsonValue[] = [];
    let hasComma = false;
    this.position += 1;
    this.match(BLANKS);
    while (!this.take(close)) {
      items.push(this.readValue(depth + 1));
      if (this.take(",")) hasComma = true;
      else if (this.text.charAt(this.position) !== close) throw this.fail(`expected ',' or '${close}'`);
      this.match(BLANKS);
    }
    const isParenthesis = close === ")" && items.length === 1 && !hasComma;
    return isParenthesis ? (items[0] as JsonValue) : items;
  }

  private readText(): string {
    const { text } = this;
    const start = this.position;
    const quote = text.charAt(start);
    if (text.startsWith(quote.repeat(3), start)) throw this.fail("a text in three quotes");
    const pieces: string[] = [];
    let from = start + 1;
    for (let at = from; at < text.length; ) {
      const character = text.charAt(at);
      if (character === quote) {
        pieces.push(text.slice(from, at));
        this.position = at + 1;
        return pieces.join("");
      }
      if (character === "\n") break;
      if (character !== "\\") {
        at += 1;
        continue;
      }
      pieces.push(text.slice(from, at));
      const [meaning, length] = this.readEscape(at);
      pieces.push(meaning);
      at += length;
      from = at;
    }
    throw this.fail("a text without its closing quote", start);
  }

  /** What the escape means, and how many characters it takes. */
  private readEscape(at: number): readonly [meaning: string, length: number] {
    const letter = this.text.charAt(at + 1);
    const simple = escapes[letter];
    if (simple !== undefined) return [simple, 2];
    const octal = /^[0-7]{1,3}/.exec(this.text.slice(at + 1, at + 4))?.[0];
    if (octal !== undefined) return [String.fromCodePoint(Number.parseInt(octal, 8)), 1 + octal.length];
    const digits = hexEscapes[letter];
    const hex = this.text.slice(at + 2, at + 2 + (digits ?? 0));
    if (digits === undefined || hex.length < digits || !/^[0-9a-fA-F]+$/.test(hex)) {
      throw this.fail("an escape that is not known here", at);
    }
    const code = Number.parseInt(hex, 16);
    if (code > 0x10ffff) throw this.fail("an escape of no character", at);
    return [String.fromCodePoint(code), 2 + digits];
  }

  /** Passes over what the pattern finds here, and returns it; nothing is an empty text. */
  private match(pattern: RegExp): string {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0] ?? "";
    this.position += found.length;
    return found;
  }

  private take(character: string): boolean {
    if (this.text.charAt(this.position) !== character) return false;
    this.position += 1;
    return true;
  }

  private fail(what: string, position = this.position): LiteralError {
    return new LiteralError(`${what} at character ${position + 1}`);
  }
}

function readNumber(literal: string): JsonValue {
  if (!/^[+-]?\d+$/.test(literal)) return Number(literal);
  const sign = literal.startsWith("-") ? "-" : "";
  const digits = literal.replace(/^[+-]?0*(?=\d)/, "");
  return new JsonInteger(digits === "0" ? "0" : sign + digits);
}
