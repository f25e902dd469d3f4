/**
 * One JSON value with nothing lost that tells two values apart.
 *
 * Floats are `number`s, as IEEE doubles that may be infinite or NaN. Integers keep their digits, so that they are
 * exact at any length without arithmetic. Of equal keys an object keeps the last one's value.
 */
export type JsonValue = null | boolean | string | number | JsonInteger | JsonArray | JsonObject;
export type JsonArray = readonly JsonValue[];
export type JsonObject = ReadonlyMap<string, JsonValue>;

export class JsonInteger {
  /** Without leading zeros; a minus sign in front if it is negative, which zero is not. */
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

/** Arrays and objects inside each other, the outermost one counted. */
export const MAX_JSON_DEPTH = 1_000;

export type JsonReading =
  | { readonly kind: "value"; readonly value: JsonValue }
  | { readonly kind: "invalid"; readonly detail: string };

class JsonSyntaxError extends Error {}

/**
 * Reads a text that is one JSON value, by the grammar of CPython's `json.loads`: RFC 8259 with `NaN`, `Infinity` and
 * `-Infinity`. Deeper nesting than `MAX_JSON_DEPTH` is invalid. Time and memory are linear in the text's length;
 * nesting takes no stack.
 *
 * @param maxValues A text with more values than that is invalid: small ones take some fifty times their text's memory.
 */
export function readJson(text: string, maxValues = Number.POSITIVE_INFINITY): JsonReading {
  try {
    return { kind: "value", value: new JsonReader(text, maxValues).readDocument() };
  } catch (error) {
    if (error instanceof JsonSyntaxError) return { kind: "invalid", detail: error.message };
    throw error;
  }
}

/**
 * A container that is not closed yet; `key` says where an object's next value goes. What it holds is made with its
 * first value: an array made empty takes room for 17.
 */
type OpenContainer =
  | { readonly kind: "array"; items: JsonValue[] | null }
  | { readonly kind: "object"; members: Map<string, JsonValue> | null; key: string };

const EMPTY_ARRAY: JsonArray = [];
const EMPTY_OBJECT: JsonObject = new Map();

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const COLON = 58;
const UPPER_E = 69;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const LOWER_E = 101;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

const LITERALS: readonly (readonly [string, JsonValue])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
];

class JsonReader {
  private readonly text: string;
  private readonly open: OpenContainer[] = [];
  private position = 0;
  private leftValues: number;

  constructor(text: string, maxValues: number) {
    this.text = text;
    this.leftValues = maxValues;
  }

  readDocument(): JsonValue {
    for (;;) {
      this.skipBlanks();
      let value = this.beginValue();
      while (value !== undefined) {
        this.skipBlanks();
        const container = this.open.at(-1);
        if (container === undefined) {
          if (this.position < this.text.length) throw this.fail("unexpected text after the value");
          return value;
        }
        value = this.addTo(container, value);
      }
    }
  }

  /** Reads a scalar or an empty container; undefined when a container was opened and its first value is next. */
  private beginValue(): JsonValue | undefined {
    this.leftValues -= 1;
    if (this.leftValues < 0) throw this.fail("more values than are read here");
    switch (this.code()) {
      case OPEN_BRACKET:
        this.push({ kind: "array", items: null });
        if (!this.take(CLOSE_BRACKET)) return undefined;
        this.open.pop();
        return EMPTY_ARRAY;
      case OPEN_BRACE: {
        const container: OpenContainer = { kind: "object", members: null, key: "" };
        this.push(container);
        if (this.take(CLOSE_BRACE)) {
          this.open.pop();
          return EMPTY_OBJECT;
        }
        container.key = this.readKey();
        return undefined;
      }
      case QUOTE:
        return this.readString();
      default:
        return this.readLiteralOrNumber();
    }
  }

  private push(container: OpenContainer): void {
    if (this.open.length === MAX_JSON_DEPTH) {
      throw this.fail(`nested deeper than ${MAX_JSON_DEPTH.toLocaleString("en")} levels`);
    }
    this.open.push(container);
    this.position += 1;
    this.skipBlanks();
  }

  /** Puts a value where it belongs; answers the container if that was its last one, else undefined. */
  private addTo(container: OpenContainer, value: JsonValue): JsonValue | undefined {
    const isArray = container.kind === "array";
    const content = isArray ? addItem(container, value) : addMember(container, value);
    if (this.take(COMMA)) {
      this.skipBlanks();
      if (!isArray) container.key = this.readKey();
      return undefined;
    }
    if (!this.take(isArray ? CLOSE_BRACKET : CLOSE_BRACE)) {
      throw this.fail(isArray ? "expected ',' or ']'" : "expected ',' or '}'");
    }
    this.open.pop();
    return content;
  }

  private readKey(): string {
    if (this.code() !== QUOTE) throw this.fail("expected a key in double quotes");
    const key = this.readString();
    this.skipBlanks();
    if (!this.take(COLON)) throw this.fail("expected ':'");
    return key;
  }

  private readString(): string {
    const { text } = this;
    const start = this.position;
    let hasEscape = false;
    for (let position = start + 1; position < text.length; position += 1) {
      const code = text.charCodeAt(position);
      if (code === QUOTE) {
        this.position = position + 1;
        return hasEscape ? this.unescape(start) : text.slice(start + 1, position);
      }
      if (code < SPACE) {
        this.position = position;
        throw this.fail("a control character in a string");
      }
      if (code === BACKSLASH) {
        hasEscape = true;
        position += 1;
      }
    }
    throw this.fail("a string without its closing quote");
  }

  /** The string literal between `start` and the position. Its escapes are the ones that JavaScript's reader knows. */
  private unescape(start: number): string {
    try {
      return JSON.parse(this.text.slice(start, this.position));
    } catch {
      this.position = start;
      throw this.fail("a string with an invalid escape");
    }
  }

  private readLiteralOrNumber(): JsonValue {
    const { text } = this;
    const code = this.code();
    if (code < DIGIT_0 || code > DIGIT_9) {
      for (const [word, value] of LITERALS) {
        if (!text.startsWith(word, this.position)) continue;
        this.position += word.length;
        return value;
      }
    }
    return this.readNumber();
  }

  private readNumber(): JsonInteger | number {
    const { text } = this;
    const start = this.position;
    if (this.code() === MINUS) this.position += 1;
    if (this.code() === DIGIT_0) this.position += 1;
    else if (!this.skipDigits()) throw this.fail("expected a value", start);
    const integerEnd = this.position;
    this.skipFraction();
    this.skipExponent();
    const literal = text.slice(start, this.position);
    if (this.position > integerEnd) return Number(literal);
    return new JsonInteger(literal === "-0" ? "0" : literal);
  }

  private skipFraction(): void {
    const start = this.position;
    if (this.take(DOT) && !this.skipDigits()) this.position = start;
  }

  private skipExponent(): void {
    const start = this.position;
    if (!this.take(LOWER_E) && !this.take(UPPER_E)) return;
    if (!this.take(PLUS)) this.take(MINUS);
    if (!this.skipDigits()) this.position = start;
  }

  /** Whether there was a digit. */
  private skipDigits(): boolean {
    const start = this.position;
    for (let code = this.code(); code >= DIGIT_0 && code <= DIGIT_9; code = this.code()) this.position += 1;
    return this.position > start;
  }

  private skipBlanks(): void {
    for (;;) {
      const code = this.code();
      if (code !== SPACE && code !== LINE_FEED && code !== TAB && code !== CARRIAGE_RETURN) return;
      this.position += 1;
    }
  }

  /** Passes over one character if it is this one. */
  private take(code: number): boolean {
    if (this.code() !== code) return false;
    this.position += 1;
    return true;
  }

  /** Code unit at the position, -1 behind the end. */
  private code(): number {
    return this.position < this.text.length ? this.text.charCodeAt(this.position) : -1;
  }

  private fail(what: string, position = this.position): JsonSyntaxError {
    return new JsonSyntaxError(`${what} at character ${position + 1}`);
  }
}

function addItem(container: Extract<OpenContainer, { kind: "array" }>, value: JsonValue): JsonArray {
  if (container.items === null) container.items = [value];
  else container.items.push(value);
  return container.items;
}

function addMember(container: Extract<OpenContainer, { kind: "object" }>, value: JsonValue): JsonObject {
  container.members ??= new Map();
  return container.members.set(container.key, value);
}
