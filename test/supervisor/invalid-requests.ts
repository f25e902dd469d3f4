/** Bodies that `/v1/execute` must refuse: each is a good one with a single thing wrong. */
import type { Program } from "./wire.ts";

const GOOD_LIMITS = { time_ms: 1000, memory_mib: 64, output_bytes: 1000 };
const GOOD_PROGRAM = { id: "p", source: "print(1)", inputs: [""], limits: GOOD_LIMITS };

const CHECKED_PROGRAM = {
  ...GOOD_PROGRAM,
  mode: "checked",
  checker: "c",
  inputs: ['{"input":"","expected":""}'],
};

/** All of them carry this chunk id, which must stay free for a good request. */
export const REFUSED_CHUNK_ID = "refused";

function body(changes: object): string {
  const good = {
    fencing_token: 1,
    chunk_id: REFUSED_CHUNK_ID,
    deadline_ms: 10_000,
    programs: [GOOD_PROGRAM],
  };
  return JSON.stringify({ ...good, ...changes });
}

const program = (changes: object): string =>
  body({ programs: [GOOD_PROGRAM, { ...GOOD_PROGRAM, ...changes }] });
const limits = (changes: object): string => program({ limits: { ...GOOD_LIMITS, ...changes } });

const BROKEN_CHECKER = "broken";
export const brokenCheckers = { [BROKEN_CHECKER]: "x = '\ud800'" };

/** Changes of a program that no worker of this size could run: said of it alone, beside others that run. */
export const impossiblePrograms: [string, Partial<Program>][] = [
  ["half a character in a source", { source: "x = '\ud800'" }],
  ["half a character in an input", { inputs: ["1", "\udfff"] }],
  [
    "half a character in a checker",
    { mode: "checked", checker: BROKEN_CHECKER, inputs: ['{"input":"","expected":""}'] },
  ],
  ["more memory than the worker has", { limits: { ...GOOD_LIMITS, memory_mib: 100_000 } }],
];

export const invalidBodies: [string, string | Buffer][] = [
  ["nothing", ""],
  ["half of a JSON text", body({}).slice(0, -2)],
  ["a list", "[]"],
  ["a number", "1"],
  ["bytes that are no text", Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
  ["brackets without end", "[".repeat(100_000)],
  ["no token", body({ fencing_token: undefined })],
  ["a token in words", body({ fencing_token: "1" })],
  ["a negative token", body({ fencing_token: -1 })],
  ["half a token", body({ fencing_token: 1.5 })],
  ["a token that is true", body({ fencing_token: true })],
  ["no chunk id", body({ chunk_id: undefined })],
  ["a number as chunk id", body({ chunk_id: 7 })],
  ["no deadline", body({ deadline_ms: undefined })],
  ["a deadline of nothing", body({ deadline_ms: 0 })],
  ["a deadline in words", body({ deadline_ms: "soon" })],
  ["no programs", body({ programs: undefined })],
  ["programs by name", body({ programs: { p: GOOD_PROGRAM } })],
  ["a program that is a text", body({ programs: ["print(1)"] })],
  ["a mode that isn't known", program({ mode: "fast" })],
  [
    "a checked program without a checker",
    program({ mode: "checked", inputs: ['{"input":"","expected":""}'] }),
  ],
  [
    "a checked program without expectations",
    body({ checkers: { c: "print(1)" }, programs: [{ ...CHECKED_PROGRAM, inputs: ["{}"] }] }),
  ],
  ["a checker that isn't there", body({ checkers: { d: "print(1)" }, programs: [CHECKED_PROGRAM] })],
  ["a checker that is a list", body({ checkers: { c: ["print(1)"] }, programs: [CHECKED_PROGRAM] })],
  ["checkers in a list", body({ checkers: ["print(1)"], programs: [CHECKED_PROGRAM] })],
  ["a list for a checker's name", body({ programs: [{ ...CHECKED_PROGRAM, checker: [] }] })],
  ["a mode that is a list", program({ mode: ["main"] })],
  ["a program without id", program({ id: undefined })],
  ["a program with a number for its id", program({ id: 1 })],
  ["a program without source", program({ source: undefined })],
  ["a source of bytes", program({ source: [1, 2, 3] })],
  ["a program without inputs", program({ inputs: undefined })],
  ["one input that is no list", program({ inputs: "1" })],
  ["an input that is a number", program({ inputs: ["1", 2] })],
  ["no limits", program({ limits: undefined })],
  ["a limit that is missing", limits({ time_ms: undefined })],
  ["a limit in words", limits({ output_bytes: "many" })],
  ["no time", limits({ time_ms: 0 })],
  ["negative time", limits({ time_ms: -1 })],
  ["no memory", limits({ memory_mib: 0 })],
  ["negative output", limits({ output_bytes: -1 })],
];
