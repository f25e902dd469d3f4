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
 *
 * A text is read once and kept as a function, since simulations evaluate the same few texts millions of times.
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

type Row = StoredRow | undefined;
type Operand = (row: Row, bindings: Bindings) => Scalar | undefined;
type Condition = (row: Row, bindings: Bindings) => boolean;
type Action = (before: StoredRow, after: Record<string, Scalar>, bindings: Bindings) => void;

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

function remembered<T>(read: (source: string) => T): (source: string) => T {
  const known = new Map<string, T>();
  return (source) => {
    let value = known.get(source);
    if (value === undefined) {
      value = read(source);
      known.set(source, value);
    }
    return value;
  };
}

const sections = ["SET", "REMOVE", "ADD"];

const placeholdersOf = remembered(
  (source: string): ReadonlySet<string> => new Set(tokensOf(source).filter((token) => /^[#:]/.test(token))),
);

/** Refuses what DynamoDB refuses before it looks at any row. */
export function checkBindings(sources: readonly string[], { columns, values }: Bindings): void {
  const used = placeholdersOf(sources.join(" , "));
  for (const token of used) {
    if (!(token in columns) && !(token in values)) throw new ValidationException(`${token} is not given`);
  }
  for (const given of [columns, values]) {
    for (const token in given) if (!used.has(token)) throw new ValidationException(`${token} is not used`);
  }
}

/** Whether the condition holds for the row; `undefined` is the row that does not exist. */
export function holds(source: string, row: StoredRow | undefined, bindings: Bindings): boolean {
  return compileCondition(source)(row, bindings);
}

const compileCondition = remembered((source: string): Condition => {
  const reader = new Reader(source);
  const condition = readCondition(reader);
  reader.end();
  return condition;
});

function readCondition(reader: Reader): Condition {
  const first = readConjunction(reader);
  if (!reader.take("OR")) return first;
  const rest = readCondition(reader);
  return (row, bindings) => first(row, bindings) || rest(row, bindings);
}

function readConjunction(reader: Reader): Condition {
  const first = readFactor(reader);
  if (!reader.take("AND")) return first;
  const rest = readConjunction(reader);
  return (row, bindings) => first(row, bindings) && rest(row, bindings);
}

function readFactor(reader: Reader): Condition {
  if (reader.take("NOT")) {
    const inner = readFactor(reader);
    return (row, bindings) => !inner(row, bindings);
  }
  if (reader.take("(")) {
    const inner = readCondition(reader);
    reader.expect(")");
    return inner;
  }
  if (reader.take("attribute_exists")) {
    const argument = readArgument(reader);
    return (row, bindings) => argument(row, bindings) !== undefined;
  }
  if (reader.take("attribute_not_exists")) {
    const argument = readArgument(reader);
    return (row, bindings) => argument(row, bindings) === undefined;
  }
  return readComparison(reader);
}

function readComparison(reader: Reader): Condition {
  const left = readOperand(reader);
  if (reader.take("IN")) {
    const list = readList(reader);
    return (row, bindings) => {
      const value = left(row, bindings);
      return list.some((right) => compare(value, "=", right(row, bindings)));
    };
  }
  const sign = reader.next();
  if (!["=", "<>", "<", "<=", ">", ">="].includes(sign)) throw reader.error(`no comparison: ${sign}`);
  const right = readOperand(reader);
  return (row, bindings) => compare(left(row, bindings), sign, right(row, bindings));
}

function readArgument(reader: Reader): Operand {
  reader.expect("(");
  const column = readColumn(reader);
  reader.expect(")");
  return (row, bindings) => row?.[column(bindings)];
}

function readList(reader: Reader): Operand[] {
  reader.expect("(");
  const list = [readOperand(reader)];
  while (reader.take(",")) list.push(readOperand(reader));
  reader.expect(")");
  return list;
}

function readColumn(reader: Reader): (bindings: Bindings) => string {
  const token = reader.next();
  return ({ columns }) => {
    const column = columns[token];
    if (column === undefined) throw reader.error(`${token} is no column`);
    return column;
  };
}

function readOperand(reader: Reader): Operand {
  if (!reader.peek()?.startsWith(":")) {
    const column = readColumn(reader);
    return (row, bindings) => row?.[column(bindings)];
  }
  const token = reader.next();
  return (_row, { values }) => {
    const value = values[token];
    if (value === undefined) throw reader.error(`${token} has no value`);
    return value;
  };
}

/** A missing column compares to nothing but by `<>`; values of different types are never equal, smaller or larger. */
function compare(left: Scalar | undefined, sign: string, right: Scalar | undefined): boolean {
  if (sign === "<>") return left !== right;
  if (left === undefined || right === undefined || typeof left !== typeof right) return false;
  switch (sign) {
    case "=":
      return left === right;
    case "<":
      return left < right;
    case "<=":
      return left <= right;
    case ">":
      return left > right;
    default:
      return left >= right;
  }
}

/** The row after the update. All operands are read from the row before it. */
export function updated(source: string, before: StoredRow, bindings: Bindings): StoredRow {
  const after: Record<string, Scalar> = { ...before };
  for (const act of compileUpdate(source)(bindings)) act(before, after, bindings);
  return after;
}

const compileUpdate = remembered((source: string) => {
  const reader = new Reader(source);
  const actions: { readonly column: (bindings: Bindings) => string; readonly act: Action }[] = [];
  const seen = new Set<string>();
  while (reader.peek() !== undefined) {
    const section = reader.next();
    if (!sections.includes(section) || seen.has(section)) throw reader.error(`section ${section}`);
    seen.add(section);
    do {
      const column = readColumn(reader);
      actions.push({ column, act: readAction(reader, section, column) });
    } while (reader.take(","));
  }
  return (bindings: Bindings): Action[] => {
    const touched = new Set(actions.map(({ column }) => column(bindings)));
    if (touched.size < actions.length) throw reader.error("two paths overlap");
    return actions.map(({ act }) => act);
  };
});

function readAction(reader: Reader, section: string, column: (bindings: Bindings) => string): Action {
  if (section === "REMOVE") {
    return (_before, after, bindings) => {
      delete after[column(bindings)];
    };
  }
  if (section === "ADD") {
    const operand = readOperand(reader);
    return (before, after, bindings) => {
      const name = column(bindings);
      after[name] = asNumber(before[name] ?? 0) + asNumber(operand(before, bindings));
    };
  }
  reader.expect("=");
  const sum = readSum(reader);
  return (before, after, bindings) => {
    after[column(bindings)] = sum(before, bindings);
  };
}

type Sum = (before: StoredRow, bindings: Bindings) => Scalar;

function readSum(reader: Reader): Sum {
  const left = readTerm(reader);
  const sign = reader.take("+") ? 1 : reader.take("-") ? -1 : 0;
  if (sign === 0) return left;
  const right = readTerm(reader);
  return (before, bindings) => asNumber(left(before, bindings)) + sign * asNumber(right(before, bindings));
}

function readTerm(reader: Reader): Sum {
  if (reader.take("if_not_exists")) {
    reader.expect("(");
    const column = readColumn(reader);
    reader.expect(",");
    const otherwise = readTerm(reader);
    reader.expect(")");
    return (before, bindings) => before[column(bindings)] ?? otherwise(before, bindings);
  }
  const operand = readOperand(reader);
  return (before, bindings) => {
    const value = operand(before, bindings);
    if (value === undefined) throw reader.error("an operand of the update does not exist");
    return value;
  };
}

function asNumber(value: Scalar | undefined): number {
  if (typeof value !== "number") throw new ValidationException(`not a number: ${value}`);
  return value;
}
