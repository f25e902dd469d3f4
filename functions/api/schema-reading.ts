/**
 * Holds a JSON value against a schema, and says all that is wrong with it, up to a bound.
 *
 * The schemas are those of the API's description. They are walked here rather than handed to their own parser, for
 * three reasons: a body may hold millions of wrong items and only the first hundred errors may cost memory; a value
 * that may be a text or an object should be judged as what it is; and the wording is made for the reader.
 * Refinements are allowed on texts and numbers only.
 */
import type { z } from "@hono/zod-openapi";
import { formatPointer, type Path, quoteName } from "./json-pointer.ts";
import type { ItemError } from "./problem.ts";

const MOST_PROBLEMS = 100;

export interface ProblemList {
  readonly items: readonly ItemError[];
  /** Nothing more is noted: the rest need not be looked at. */
  isFull(): boolean;
  add(path: Readonly<Path>, detail: string): void;
}

export function createProblemList(): ProblemList {
  const items: ItemError[] = [];
  return {
    items,
    isFull: () => items.length >= MOST_PROBLEMS,
    add(path, detail) {
      if (items.length < MOST_PROBLEMS) items.push({ pointer: formatPointer(path), detail });
    },
  };
}

/**
 * Reads a value with its defaults filled in. What it returns may be used only if no problem was added meanwhile.
 * Records come back as maps, since their keys are anybody's.
 */
export function readAgainst(schema: z.ZodType, value: unknown, path: Path, problems: ProblemList): unknown {
  if (problems.isFull()) return undefined;
  const kind = schema as unknown as KnownSchema;
  switch (kind.def.type) {
    case "optional":
      return value === undefined ? undefined : readAgainst(kind.def.innerType, value, path, problems);
    case "default":
      return value === undefined
        ? kind.def.defaultValue
        : readAgainst(kind.def.innerType, value, path, problems);
    case "object":
      return readObject(kind.def, value, path, problems);
    case "array":
      return readArray(kind.def, value, path, problems);
    case "record":
      return readRecord(kind.def, value, path, problems);
    case "union":
      return kind.def.discriminator === undefined
        ? readUnion(kind.def.options, value, path, problems)
        : readChoice(kind.def.options, kind.def.discriminator, value, path, problems);
    case "unknown":
      return value;
    default:
      return readLeaf(schema, value, path, problems);
  }
}

/** The parts of the schema library's public definitions that are used here. */
type KnownSchema = { readonly def: Definition };
type Definition =
  | { readonly type: "optional"; readonly innerType: z.ZodType }
  | { readonly type: "default"; readonly innerType: z.ZodType; readonly defaultValue: unknown }
  | ObjectDefinition
  | ArrayDefinition
  | RecordDefinition
  | { readonly type: "union"; readonly options: readonly z.ZodType[]; readonly discriminator?: string }
  | { readonly type: "unknown" }
  | { readonly type: "leaf" };
interface ObjectDefinition {
  readonly type: "object";
  readonly shape: Readonly<Record<string, z.ZodType>>;
  readonly catchall?: { readonly def: { readonly type: string } };
}
interface ArrayDefinition {
  readonly type: "array";
  readonly element: z.ZodType;
  readonly checks?: readonly { readonly _zod: { readonly def: LengthCheck } }[];
}
interface LengthCheck {
  readonly check: string;
  readonly minimum?: number;
  readonly maximum?: number;
}
interface RecordDefinition {
  readonly type: "record";
  readonly keyType: z.ZodType;
  readonly valueType: z.ZodType;
}

function readObject(
  definition: ObjectDefinition,
  value: unknown,
  path: Path,
  problems: ProblemList,
): unknown {
  if (!isObject(value)) return complain(path, problems, describeType("object", value));
  const { shape, catchall } = definition;
  if (catchall?.def.type === "never") refuseUnknownFields(shape, value, path, problems);
  const read: Record<string, unknown> = {};
  for (const name in shape) {
    const field = Object.hasOwn(value, name) ? value[name] : undefined;
    path.push(name);
    const inner = readAgainst(shape[name] as z.ZodType, field, path, problems);
    path.pop();
    if (inner !== undefined) read[name] = inner;
  }
  return read;
}

function refuseUnknownFields(shape: object, value: object, path: Path, problems: ProblemList): void {
  for (const name in value) {
    if (Object.hasOwn(shape, name)) continue;
    if (problems.isFull()) return;
    const known = Object.keys(shape).map(quoteName).join(", ");
    problems.add([...path, name], `the field ${quoteName(name)} is not known here; known are ${known}`);
  }
}

function readArray(definition: ArrayDefinition, value: unknown, path: Path, problems: ProblemList): unknown {
  if (!Array.isArray(value)) return complain(path, problems, describeType("array", value));
  for (const { _zod } of definition.checks ?? []) {
    const { minimum = 0, maximum = Number.POSITIVE_INFINITY } = _zod.def;
    const found = value.length === 0 ? "none" : `${value.length}`;
    if (value.length < minimum)
      return complain(path, problems, `must have at least ${minimum}, and has ${found}`);
    if (value.length > maximum)
      return complain(path, problems, `may have up to ${maximum}, and has ${found}`);
  }
  const read: unknown[] = [];
  for (let index = 0; index < value.length && !problems.isFull(); index += 1) {
    path.push(index);
    read.push(readAgainst(definition.element, value[index], path, problems));
    path.pop();
  }
  return read;
}

function readRecord(
  definition: RecordDefinition,
  value: unknown,
  path: Path,
  problems: ProblemList,
): unknown {
  if (!isObject(value)) return complain(path, problems, describeType("object", value));
  const read = new Map<string, unknown>();
  for (const name in value) {
    if (problems.isFull()) break;
    path.push(name);
    readAgainst(definition.keyType, name, path, problems);
    read.set(name, readAgainst(definition.valueType, value[name], path, problems));
    path.pop();
  }
  return read;
}

/** Of several types the one is meant that the value has. */
function readUnion(
  options: readonly z.ZodType[],
  value: unknown,
  path: Path,
  problems: ProblemList,
): unknown {
  for (const option of options) {
    if (jsonTypeOf(option) === typeOf(value)) return readAgainst(option, value, path, problems);
  }
  const wanted = options.map((option) => nameType(jsonTypeOf(option))).join(" or ");
  return complain(path, problems, describeWanted(wanted, value));
}

/** Of several objects the one is meant that a field names. */
function readChoice(
  options: readonly z.ZodType[],
  field: string,
  value: unknown,
  path: Path,
  problems: ProblemList,
): unknown {
  if (!isObject(value)) return complain(path, problems, describeType("object", value));
  const names = options.map((option) => (option as unknown as ChoiceSchema).def.shape[field]?.def.values[0]);
  const given = Object.hasOwn(value, field) ? value[field] : undefined;
  const option = options[names.indexOf(given as string)];
  if (option !== undefined) return readAgainst(option, value, path, problems);
  const wanted = names.map((name) => JSON.stringify(name)).join(" or ");
  return complain(
    [...path, field],
    problems,
    `${given === undefined ? "is missing; it " : ""}must be ${wanted}`,
  );
}

/** An object whose `field` is one literal. */
interface ChoiceSchema {
  readonly def: { readonly shape: Readonly<Record<string, { readonly def: { readonly values: string[] } }>> };
}

function readLeaf(schema: z.ZodType, value: unknown, path: Path, problems: ProblemList): unknown {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  for (const issue of parsed.error.issues) problems.add(path, describeIssue(issue, value));
  return undefined;
}

function complain(path: Path, problems: ProblemList, detail: string): undefined {
  problems.add(path, path.length === 0 ? `the body ${detail}` : detail);
}

function describeIssue(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case "invalid_type":
      return describeType(issue.expected, value);
    case "too_small":
      if (issue.inclusive === false) return `must be more than ${issue.minimum}, and is ${value}`;
      return `must be at least ${issue.minimum}${issue.origin === "string" ? " long" : `, and is ${value}`}`;
    case "too_big":
      return issue.origin === "string"
        ? `may be ${issue.maximum} characters long, and is longer`
        : `may be at most ${issue.maximum}, and is ${value}`;
    case "invalid_value":
      return `must be ${issue.values.map((allowed) => JSON.stringify(allowed)).join(" or ")}`;
    default:
      return issue.message;
  }
}

function describeType(wanted: string, value: unknown): string {
  return describeWanted(nameType(wanted), value);
}

function describeWanted(wanted: string, value: unknown): string {
  if (value === undefined) return `is missing; it must be ${wanted}`;
  return `must be ${wanted}, not ${typeof value === "number" ? value : nameType(typeOf(value))}`;
}

const typeNames: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  object: "an object",
  array: "a list",
};

function nameType(type: string): string {
  return typeNames[type] ?? type;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function jsonTypeOf(schema: z.ZodType): string {
  const { type } = schema.def;
  if (type === "enum") return "string";
  return type === "record" ? "object" : type;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
