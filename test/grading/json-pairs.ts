/**
 * Pairs of texts that may or may not be equal JSON values: one value spelled twice, a value and a mutant of it, and
 * texts with a flaw. The same seed makes the same pairs.
 */
export type JsonPair = readonly [expected: string, stdout: string];

type Node =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "number"; readonly spellings: readonly string[] }
  | { readonly kind: "string"; readonly value: string }
  | { readonly kind: "array"; readonly items: readonly Node[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [key: string, value: Node])[] }
  | { readonly kind: "nest"; readonly depth: number; readonly inner: Node };

export function makeJsonPairs(count: number, seed: number): JsonPair[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => makePair(random));
}

interface Random {
  below(limit: number): number;
  pick<T>(choices: readonly T[]): T;
  chance(probability: number): boolean;
}

function createRandom(seed: number): Random {
  let state = seed;
  const next = () => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: <T>(choices: readonly T[]) => choices[below(choices.length)] as T,
    chance: (probability) => next() < probability,
  };
}

function makePair(random: Random): JsonPair {
  const node = random.chance(0.02) ? makeNest(random) : makeNode(random, 3);
  const first = spell(node, random);
  const kind = random.below(10);
  if (kind < 4) return [first, spell(node, random)];
  if (kind < 8) return [first, spell(mutate(node, random), random)];
  if (kind === 8) return [first, damage(first, random)];
  return [damage(first, random), first];
}

const LONG_DIGITS = "1234567890".repeat(500);

/** Each row spells equal values; values of different rows differ, mostly by a hair. */
const NUMBERS: readonly (readonly string[])[] = [
  ["0", "-0"],
  ["0.0", "0e5", "0.000", "0E-3", "1e-400"],
  ["-0.0", "-0e1", "-0.00", "-1e-400"],
  ["1"],
  ["1.0", "1e0", "10e-1", "1.00", "0.1e1", "1E+0"],
  ["100"],
  ["100.0", "1e2", "1E2", "1e+02", "1000e-1"],
  ["-17"],
  ["0.1", "1e-1", "0.1000000000000000055511151231257827"],
  ["0.30000000000000004", "3.0000000000000004e-1"],
  ["0.3", "3e-1"],
  ["1e16", "10000000000000000.0"],
  ["10000000000000000"],
  ["9007199254740993"],
  ["9007199254740992"],
  ["9007199254740993.0", "9007199254740992.0"],
  ["1e22", "10000000000000000000000.0"],
  ["123456789012345678901234567890"],
  ["123456789012345678901234567891"],
  ["1.7976931348623157e308"],
  ["5e-324", "4.9e-324", "3e-324"],
  ["1e400", "1e999", "Infinity", "1e400"],
  ["-1e400", "-Infinity"],
  ["NaN"],
];

const LONG_NUMBERS: readonly (readonly string[])[] = [
  [LONG_DIGITS],
  [`${LONG_DIGITS.slice(0, -1)}1`],
  [`-${LONG_DIGITS}`],
  [`0.${LONG_DIGITS}`],
];

const CHARACTERS = [
  "a",
  "b",
  "A",
  " ",
  "é",
  "\u2028",
  "\u007f",
  "😀",
  "\ud800",
  "\udc00",
  '"',
  "\\",
  "/",
  "\n",
  "\t",
  "\0",
];
const KEYS = ["", "a", "b", "A", "é", "😀", "__proto__", "10", "9", "\ud800", "constructor", "a\n"];

function makeNode(random: Random, depth: number): Node {
  const kind = random.below(depth > 0 ? 10 : 6);
  if (kind < 1) return { kind: "literal", text: random.pick(["true", "false", "null"]) };
  if (kind < 4) return makeNumber(random);
  if (kind < 6) {
    return {
      kind: "string",
      value: Array.from({ length: random.below(5) }, () => random.pick(CHARACTERS)).join(""),
    };
  }
  const children = Array.from({ length: random.below(5) }, () => makeNode(random, depth - 1));
  if (kind < 8) return { kind: "array", items: children };
  return { kind: "object", members: children.map((child) => [random.pick(KEYS), child] as const) };
}

function makeNumber(random: Random): Node {
  return { kind: "number", spellings: random.pick(random.chance(0.02) ? LONG_NUMBERS : NUMBERS) };
}

function makeNest(random: Random): Node {
  return { kind: "nest", depth: 900 + random.below(201), inner: makeNumber(random) };
}

function spell(node: Node, random: Random): string {
  const space = () => (random.chance(0.2) ? random.pick([" ", "\n", "\t", "\r\n", "  "]) : "");
  const spellInner = (): string => {
    switch (node.kind) {
      case "literal":
        return node.text;
      case "number":
        return random.pick(node.spellings);
      case "string":
        return spellString(node.value, random);
      case "array":
        return `[${node.items.map((item) => spell(item, random)).join(",") || space()}]`;
      case "object":
        return `{${spellMembers(node.members, random).join(",") || space()}}`;
      case "nest":
        return `${"[".repeat(node.depth)}${spell(node.inner, random)}${"]".repeat(node.depth)}`;
    }
  };
  return `${space()}${spellInner()}${space()}`;
}

/** Members in any order that leaves the last of equal keys the last. */
function spellMembers(members: readonly (readonly [string, Node])[], random: Random): string[] {
  const keys = members.map(([key]) => key);
  const mayReorder = new Set(keys).size === keys.length;
  const ordered = mayReorder && random.chance(0.5) ? [...members].reverse() : members;
  return ordered.map(
    ([key, value]) => `${spellString(key, random)}${random.pick(["", " "])}:${spell(value, random)}`,
  );
}

function spellString(value: string, random: Random): string {
  const units = Array.from({ length: value.length }, (_, index) => value.charCodeAt(index));
  if (random.chance(0.3)) {
    const hex = (unit: number) => unit.toString(16).padStart(4, "0");
    const digits = (unit: number) => (random.chance(0.5) ? hex(unit) : hex(unit).toUpperCase());
    return `"${units.map((unit) => `\\u${digits(unit)}`).join("")}"`;
  }
  // A character pair is written as it is, a lone surrogate as an escape.
  const text = JSON.stringify(value);
  return random.chance(0.3) ? text.replaceAll("/", "\\/") : text;
}

/** The value with one thing changed; now and then to an equal one. */
function mutate(node: Node, random: Random): Node {
  if (random.chance(0.1)) return { kind: "array", items: [node] };
  switch (node.kind) {
    case "literal":
      return random.pick<Node>([
        { kind: "literal", text: "null" },
        { kind: "number", spellings: ["1"] },
        node,
      ]);
    case "number":
      return random.chance(0.8) ? makeNumber(random) : { kind: "number", spellings: ["1", "1.0"] };
    case "string":
      return {
        kind: "string",
        value: random.pick([`${node.value}a`, node.value.slice(1), node.value.toUpperCase()]),
      };
    case "array":
      return { kind: "array", items: changeOne(node.items, random, (item) => mutate(item, random)) };
    case "object":
      return mutateObject(node.members, random);
    case "nest":
      return { ...node, depth: node.depth + random.pick([-1, 0, 1]) };
  }
}

function mutateObject(members: readonly (readonly [string, Node])[], random: Random): Node {
  const [first] = members;
  if (first !== undefined && random.chance(0.4)) {
    // The same key again: in front it changes nothing, behind it does.
    const again = [first[0], makeNode(random, 1)] as const;
    return { kind: "object", members: random.chance(0.5) ? [again, ...members] : [...members, again] };
  }
  const change = ([key, value]: readonly [string, Node]): readonly [string, Node] =>
    random.chance(0.3) ? [random.pick(KEYS), value] : [key, mutate(value, random)];
  return { kind: "object", members: changeOne(members, random, change) };
}

function changeOne<T>(items: readonly T[], random: Random, change: (item: T) => T): T[] {
  const chosen = random.below(items.length);
  return items.map((item, index) => (index === chosen ? change(item) : item));
}

/** A text that is a flaw away from JSON, or only looks so. */
function damage(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  switch (random.below(6)) {
    case 0:
      return `\ufeff${text}`;
    case 1:
      return text.slice(0, at) + text.slice(at + 1);
    case 2:
      return `${text}${random.pick([",", "]", "0", "\u00a0", "\f", "null", "\0", "."])}`;
    case 3:
      return (
        text.slice(0, at) +
        random.pick(["\t", "\u0001", "0", "-", "+", "'", "\\", ",", ".", "e", "\\u12"]) +
        text.slice(at)
      );
    case 4:
      return text.replace(/[0-9]/, (digit) =>
        random.pick([`0${digit}`, `${digit}.`, `+${digit}`, `${digit}e`, "٣"]),
      );
    default:
      return text.replaceAll('"', "'");
  }
}
