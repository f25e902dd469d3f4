/**
 * DynamoDB's condition and update expressions, as far as the pool's own go.
 *
 * condition  = conjunction { OR conjunction }        conjunction = factor { AND factor }
 * factor     = NOT factor | ( condition ) | attribute_exists(#p) | attribute_not_exists(#p)
 *            | operand ( = | <> | < | <= | > | >= ) operand | operand IN ( operand {, operand} )
 * update     = { SET #p = sum {, …} | REMOVE #p {, …} | ADD #p :v {, …} }
 * sum        = term [ (+ | -) term ]                 term = operand | if_not_exists(#p, term)
 *
 * Stricter than DynamoDB in one thing: columns are always written `#placeholder`. Like DynamoDB it refuses a
 * placeholder or value that is not given, or given and not used, or given with two sections of a kind.
 */
import type { Scalar, StoredRow } from "../../functions/pool/ports.ts";

/** DynamoDB would have refused the expression itself: always a bug of the caller. */
export class ValidationException extends Error {
  override readonly name = "ValidationException";
}

export interface Bindings {
  readonly columns: Readonly<Record<string, string>>;
  readonly values: Readonly<Record<string, Scalar>>;
}

/** Splits into placeholders, values, words and signs. */
function tokensOf(source: string): string[] {
  const tokens = source.match(/[#:]?\w+|<=|>=|<>|[=<>(),+-]/g) ?? [];
  if (tokens.join("") !== source.replaceAll(/\s+/g, ""))
    throw new ValidationException(`unreadable: ${source}`);
  return tokens;
}

class Reader {
  private readonly tokens: string[];
  private readonly source: string;
  private at = 0;

  constructor(source: string) {
    this.source = source;
    this.tokens = tokensOf(source);
  }

  peek(): string | undefined {
    return this.tokens[this.at];
  }

  next(): string {
    const token = this.tokens[this.at];
    if (token === undefined) throw this.error("ends too early");
    this.at += 1;
    return token;
  }

  take(token: string): boolean {
    if (this.peek() !== token) return false;
    this.at += 1;
    return true;
  }

  expect(token: string): void {
    if (!this.take(token)) throw this.error(`expected ${token}, found ${this.peek()}`);
  }

  end(): void {
    if (this.at < this.tokens.length) throw this.error(`did not expect ${this.peek()}`);
  }

  error(what: string): ValidationException {
    return new ValidationException(`${what}: ${this.source}`);
  }
}

const sections = ["SET", "REMOVE", "ADD"];

/** Refuses what DynamoDB refuses before it looks at any row. */
export function checkBindings(sources: readonly string[], bindings: Bindings): void {
  const used = new Set(sources.flatMap(tokensOf).filter((token) => /^[#:]/.test(token)));
  const given = [...Object.keys(bindings.columns), ...Object.keys(bindings.values)];
  for (const token of used)
    if (!given.includes(token)) throw new ValidationException(`${token} is not given`);
  for (const token of given) if (!used.has(token)) throw new ValidationException(`${token} is not used`);
}

/** Whether the condition holds for the row; `undefined` is the row that does not exist. */
export function holds(source: string, row: StoredRow | undefined, bindings: Bindings): boolean {
  const reader = new Reader(source);
  const result = readCondition(reader, row, bindings);
  reader.end();
  return result;
}

type Row = StoredRow | undefined;

function readCondition(reader: Reader, row: Row, bindings: Bindings): boolean {
  let result = readConjunction(reader, row, bindings);
  while (reader.take("OR")) result = readConjunction(reader, row, bindings) || result;
  return result;
}

function readConjunction(reader: Reader, row: Row, bindings: Bindings): boolean {
  let result = readFactor(reader, row, bindings);
  while (reader.take("AND")) result = readFactor(reader, row, bindings) && result;
  return result;
}

function readFactor(reader: Reader, row: Row, bindings: Bindings): boolean {
  if (reader.take("NOT")) return !readFactor(reader, row, bindings);
  if (reader.take("(")) {
    const inner = readCondition(reader, row, bindings);
    reader.expect(")");
    return inner;
  }
  if (reader.take("attribute_exists")) return readArgument(reader, row, bindings) !== undefined;
  if (reader.take("attribute_not_exists")) return readArgument(reader, row, bindings) === undefined;
  const left = readOperand(reader, row, bindings);
  if (reader.take("IN")) return readList(reader, row, bindings).some((right) => compare(left, "=", right));
  return compare(left, reader.next(), readOperand(reader, row, bindings));
}

function readArgument(reader: Reader, row: Row, bindings: Bindings): Scalar | undefined {
  reader.expect("(");
  const column = readColumn(reader, bindings);
  reader.expect(")");
  return row?.[column];
}

function readList(reader: Reader, row: Row, bindings: Bindings): (Scalar | undefined)[] {
  reader.expect("(");
  const list = [readOperand(reader, row, bindings)];
  while (reader.take(",")) list.push(readOperand(reader, row, bindings));
  reader.expect(")");
  return list;
}

function readColumn(reader: Reader, bindings: Bindings): string {
  const token = reader.next();
  const column = bindings.columns[token];
  if (column === undefined) throw reader.error(`${token} is no column`);
  return column;
}

function readOperand(reader: Reader, row: Row, bindings: Bindings): Scalar | undefined {
  if (!reader.peek()?.startsWith(":")) {
    const column = readColumn(reader, bindings);
    return row?.[column];
  }
  const token = reader.next();
  const value = bindings.values[token];
  if (value === undefined) throw reader.error(`${token} has no value`);
  return value;
}

/** A missing column compares to nothing but by `<>`; values of different types are never equal, smaller or larger. */
function compare(left: Scalar | undefined, sign: string, right: Scalar | undefined): boolean {
  if (sign === "<>") return left !== right;
  const comparable = left !== undefined && right !== undefined && typeof left === typeof right;
  switch (sign) {
    case "=":
      return comparable && left === right;
    case "<":
      return comparable && left < right;
    case "<=":
      return comparable && left <= right;
    case ">":
      return comparable && left > right;
    case ">=":
      return comparable && left >= right;
    default:
      throw new ValidationException(`no comparison: ${sign}`);
  }
}

/** The row after the update. All operands are read from the row before it. */
export function updated(source: string, before: StoredRow, bindings: Bindings): StoredRow {
  const reader = new Reader(source);
  const after: Record<string, Scalar> = { ...before };
  const seen = new Set<string>();
  const touched = new Set<string>();
  while (reader.peek() !== undefined) {
    const section = reader.next();
    if (!sections.includes(section) || seen.has(section)) throw reader.error(`section ${section}`);
    seen.add(section);
    do {
      const column = readColumn(reader, bindings);
      if (touched.has(column)) throw reader.error(`two paths overlap: ${column}`);
      touched.add(column);
      readAction(reader, section, column, before, after, bindings);
    } while (reader.take(","));
  }
  return after;
}

function readAction(
  reader: Reader,
  section: string,
  column: string,
  before: StoredRow,
  after: Record<string, Scalar>,
  bindings: Bindings,
): void {
  if (section === "REMOVE") delete after[column];
  else if (section === "ADD") {
    after[column] = asNumber(before[column] ?? 0) + asNumber(readOperand(reader, before, bindings));
  } else {
    reader.expect("=");
    after[column] = readSum(reader, before, bindings);
  }
}

function readSum(reader: Reader, before: StoredRow, bindings: Bindings): Scalar {
  const left = readTerm(reader, before, bindings);
  if (reader.take("+")) return asNumber(left) + asNumber(readTerm(reader, before, bindings));
  if (reader.take("-")) return asNumber(left) - asNumber(readTerm(reader, before, bindings));
  return left;
}

function readTerm(reader: Reader, before: StoredRow, bindings: Bindings): Scalar {
  if (reader.take("if_not_exists")) {
    reader.expect("(");
    const present = before[readColumn(reader, bindings)];
    reader.expect(",");
    const otherwise = readTerm(reader, before, bindings);
    reader.expect(")");
    return present ?? otherwise;
  }
  const value = readOperand(reader, before, bindings);
  if (value === undefined) throw reader.error("an operand of the update does not exist");
  return value;
}

function asNumber(value: Scalar | undefined): number {
  if (typeof value !== "number") throw new ValidationException(`not a number: ${value}`);
  return value;
}
