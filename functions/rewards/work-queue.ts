/**
 * What waits for a worker: cases in the order of their programs, and cases that must run alone.
 *
 * Cases that were never handed out are a number per program and not a list, so that a batch of a million cases waits
 * in little memory. Cases that must run alone wait until the others are handed out, and before them those that must run
 * among no others than they did: what they may do to a worker then harms nobody else's turn.
 */
import { aimForCases, type ChunkFill, chunkLimits, isChunkFull, shareOfProgram } from "./chunking.ts";
import type { PlannedProgram } from "./plan.ts";
import { createRequestSizes, type RequestSize } from "./request-size.ts";
import { firstStage } from "./stages.ts";

/** The cases of one program in one chunk. */
export interface Portion {
  readonly program: PlannedProgram;
  readonly caseIndexes: readonly number[];
}

/** What one worker does in one request. */
export interface Assignment {
  readonly portions: readonly Portion[];
  /** A single case that came back from a chunk that went wrong. */
  readonly alone: boolean;
  /** How many workers were lost with just these cases before any of them had started. */
  readonly unstartedLosses: number;
  /** Of the request, at most. */
  readonly bytes: number;
}

export interface WorkQueue {
  /** Cases that wait. */
  size(): number;
  /** How many of them must run alone. */
  sizeAlone(): number;
  /** The next chunk for one of `workers` workers; null when nothing waits. */
  take(workers: number): Assignment | null;
  /** Puts a case back, to run among others or alone. */
  putBack(program: PlannedProgram, caseIndex: number, alone: boolean): void;
  /** Puts cases back that are handed out as they are, among no others. */
  putBackAsOne(assignment: Assignment): void;
  /** What waits of this program, except alone, is not handed out until it is let go: it may be what ends workers. */
  hold(program: PlannedProgram): void;
  letGo(program: PlannedProgram): void;
  /** So many of the program's cases may be handed out by now, the first ones; never fewer than before. */
  allow(program: PlannedProgram, cases: number): void;
  /** From now on no chunk of several cases has more bytes than this. */
  limitBytes(bytes: number): void;
  /** Forgets what waits of this program: its fate is known. */
  drop(program: PlannedProgram): void;
}

interface Waiting {
  readonly program: PlannedProgram;
  nextCase: number;
  /** The first case that may not be handed out yet. */
  endCase: number;
  readonly returned: number[];
  listed: boolean;
  held: boolean;
  aloneCases: number;
}

export function createWorkQueue(programs: readonly PlannedProgram[]): WorkQueue {
  const waiting = new Map<PlannedProgram, Waiting>();
  let line: Waiting[] = [];
  let head = 0;
  let alone: { program: PlannedProgram; caseIndex: number; unstartedLosses: number }[] = [];
  let asOne: Assignment[] = [];
  let together = 0;
  let largestBytes: number = chunkLimits.largestBytes;
  const startRequest = createRequestSizes();
  for (const program of programs) {
    const endCase = firstStage(program.task);
    const entry = { program, nextCase: 0, endCase, returned: [], listed: true, held: false, aloneCases: 0 };
    waiting.set(program, entry);
    line.push(entry);
    together += endCase;
  }

  const list = (entry: Waiting) => {
    if (!entry.listed) line.push(entry);
    entry.listed = true;
  };
  const takeTogether = (workers: number): Assignment => {
    const aimCases = aimForCases(together, workers);
    const portions: Portion[] = [];
    const size = startRequest();
    let fill: ChunkFill = { programs: 0, cases: 0 };
    while (head < line.length && !isChunkFull(fill, aimCases)) {
      const entry = line[head] as Waiting;
      const share = entry.held ? 0 : shareOfProgram(countWaiting(entry), fill, aimCases);
      const caseIndexes = takeCases(entry, share, size, largestBytes);
      if (caseIndexes.length > 0) portions.push({ program: entry.program, caseIndexes });
      together -= caseIndexes.length;
      fill = { programs: portions.length, cases: fill.cases + caseIndexes.length };
      if (countWaiting(entry) > 0 && !entry.held) break;
      entry.listed = false;
      head += 1;
    }
    if (head > 1024) {
      line = line.slice(head);
      head = 0;
    }
    return { portions, alone: false, unstartedLosses: 0, bytes: size.bytes() };
  };
  const addAlone = (program: PlannedProgram, caseIndex: number, unstartedLosses: number) => {
    alone.push({ program, caseIndex, unstartedLosses });
    (waiting.get(program) as Waiting).aloneCases += 1;
  };
  /** Takes the program's cases out of whatever is handed out as it is. */
  const takeFromAsOne = (program: PlannedProgram): number[] => {
    const taken = asOne.flatMap(({ portions }) => casesOf(portions, program));
    if (taken.length === 0) return taken;
    asOne = asOne
      .map((one) => ({ ...one, portions: one.portions.filter((portion) => portion.program !== program) }))
      .filter(({ portions }) => portions.length > 0);
    return taken;
  };

  return {
    size: () => together + alone.length + asOne.reduce((sum, { portions }) => sum + countCases(portions), 0),
    sizeAlone: () => alone.length,
    take(workers) {
      if (together > 0) return takeTogether(workers);
      const one = asOne.shift();
      if (one !== undefined) return one;
      const next = alone.shift();
      if (next === undefined) return null;
      const { program, caseIndex, unstartedLosses } = next;
      (waiting.get(program) as Waiting).aloneCases -= 1;
      const size = startRequest();
      size.add(program, size.ofProgram(program) + size.ofInput(program.task, caseIndex));
      const portions = [{ program, caseIndexes: [caseIndex] }];
      return { portions, alone: true, unstartedLosses, bytes: size.bytes() };
    },
    putBack(program, caseIndex, mustBeAlone) {
      const entry = waiting.get(program) as Waiting;
      if (mustBeAlone) return addAlone(program, caseIndex, 0);
      entry.returned.push(caseIndex);
      if (entry.held) return;
      together += 1;
      list(entry);
    },
    putBackAsOne({ portions, unstartedLosses, bytes }) {
      const [first] = portions;
      if (first !== undefined && countCases(portions) === 1) {
        return addAlone(first.program, first.caseIndexes[0] as number, unstartedLosses);
      }
      const isHeld = ({ program }: Portion) => (waiting.get(program) as Waiting).held;
      for (const { program, caseIndexes } of portions.filter(isHeld))
        (waiting.get(program) as Waiting).returned.push(...caseIndexes);
      const free = portions.filter((portion) => !isHeld(portion));
      if (free.length > 0) asOne.push({ portions: free, alone: false, unstartedLosses, bytes });
    },
    hold(program) {
      const entry = waiting.get(program) as Waiting;
      if (!entry.held) together -= countWaiting(entry);
      entry.held = true;
      entry.returned.push(...takeFromAsOne(program));
    },
    letGo(program) {
      const entry = waiting.get(program) as Waiting;
      if (!entry.held) return;
      entry.held = false;
      together += countWaiting(entry);
      list(entry);
    },
    allow(program, cases) {
      const entry = waiting.get(program) as Waiting;
      if (!entry.held) together += cases - entry.endCase;
      entry.endCase = cases;
      if (!entry.held) list(entry);
    },
    limitBytes(bytes) {
      largestBytes = Math.min(largestBytes, bytes);
    },
    drop(program) {
      const entry = waiting.get(program) as Waiting;
      if (!entry.held) together -= countWaiting(entry);
      entry.nextCase = entry.endCase;
      entry.returned.length = 0;
      takeFromAsOne(program);
      if (entry.aloneCases > 0) alone = alone.filter((single) => single.program !== program);
      entry.aloneCases = 0;
    },
  };
}

export function countCases(portions: readonly Portion[]): number {
  return portions.reduce((sum, { caseIndexes }) => sum + caseIndexes.length, 0);
}

function casesOf(portions: readonly Portion[], program: PlannedProgram): readonly number[] {
  return portions.find((portion) => portion.program === program)?.caseIndexes ?? [];
}

function countWaiting(entry: Waiting): number {
  return entry.endCase - entry.nextCase + entry.returned.length;
}

/** Takes up to `share` cases that fit into a request beside what is in it; its first case always does. */
function takeCases(entry: Waiting, share: number, size: RequestSize, largestBytes: number): number[] {
  const { program } = entry;
  const caseIndexes: number[] = [];
  if (share === 0) return caseIndexes;
  const isFirst = size.isEmpty();
  let bytes = size.ofProgram(program);
  while (caseIndexes.length < share) {
    const caseIndex = entry.returned.at(-1) ?? entry.nextCase;
    const inputBytes = size.ofInput(program.task, caseIndex);
    const mustFit = !(isFirst && caseIndexes.length === 0);
    if (mustFit && size.bytes() + bytes + inputBytes > largestBytes) break;
    bytes += inputBytes;
    caseIndexes.push(caseIndex);
    if (entry.returned.length > 0) entry.returned.pop();
    else entry.nextCase += 1;
  }
  if (caseIndexes.length > 0) size.add(program, bytes);
  return caseIndexes;
}
