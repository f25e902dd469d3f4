/** Sandboxes with fencing supervisors: what runs in them, for whom, and what ends it. */
import type { ListedSandbox } from "../../functions/pool/ports.ts";
import type { Chunk } from "../../functions/rewards/ports.ts";
import type { SimulatedProcess } from "./process.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Watch } from "./watch.ts";

/** A lease as its holder sees it, from the moment it has it to the moment it gives it back. */
export interface Holding {
  readonly token: number;
  readonly process: SimulatedProcess;
  /** Whether nobody has a reason to take the worker away: its run isn't finished. */
  isWanted(): boolean;
}

interface Program {
  readonly token: number;
  readonly process: SimulatedProcess;
  readonly chunkId: string;
  stopped: boolean;
  stop(how: "superseded" | "gone"): void;
  /** Its holder hears no more of it; it runs on. */
  leave(): void;
}

export interface SimulatedSandbox extends ListedSandbox {
  diesAtMs: number;
  readonly endsAtMs: number;
  /** The supervisor's memory: the highest token it was told. */
  highestToken: number;
  programs: Program[];
  /** Its supervisor is being started in it. */
  isBeingMade: boolean;
  readonly holdings: Set<Holding>;
  /** Of the supervisor in it. */
  readonly version: string;
  /** It lives, and nobody can reach it. */
  isUnreachable: boolean;
  /** Why it may be there beside another of its slot: who said so was wrong, or it came when nobody could know. */
  isDisowned: boolean;
  /** The provider said that it is gone: nobody can be blamed for not renewing it. */
  isBelievedGone: boolean;
}

export interface ProgramWorld {
  readonly time: SimulatedTime;
  readonly random: () => number;
  readonly watch: Watch;
  /** Whether somebody with a wrong clock has written to that life of the slot. */
  readonly isTainted: (sandbox: SimulatedSandbox) => boolean;
}

/** Holders that are on time, whose worker nobody has a reason to take. */
export function goodHolders({ isTainted }: ProgramWorld, sandbox: SimulatedSandbox): Holding[] {
  if (sandbox.holdings.size === 0 || isTainted(sandbox)) return [];
  return [...sandbox.holdings].filter(
    ({ process, token, isWanted }) => process.isWell() && isWanted() && token >= sandbox.highestToken,
  );
}

/** What the supervisor does when it is told a token: it stops what runs under an older one. */
export function supersede(
  world: ProgramWorld,
  sandbox: SimulatedSandbox,
  token: number,
  process: SimulatedProcess | null,
): void {
  const { watch } = world;
  for (const holding of sandbox.holdings) {
    if (holding.token === token && holding.process !== process)
      watch.violation("one token used by two", `${sandbox.sandboxId} ${token}`);
  }
  if (token > sandbox.highestToken) {
    for (const { process: holder } of goodHolders(world, sandbox).filter((holding) => holding.token < token))
      watch.violation("taken from its holder", `${sandbox.sandboxId} of ${holder.name}`);
  }
  sandbox.highestToken = token;
  for (const program of sandbox.programs) if (program.token < token) program.stop("superseded");
  sandbox.programs = sandbox.programs.filter(({ stopped }) => !stopped);
  if (sandbox.programs.some((program) => program.process !== process))
    watch.violation("programs of two holders run", `${sandbox.sandboxId} ${token}`);
}

/** A chunk whose programs take so long, if they may. */
export interface SimulatedChunk extends Chunk {
  readonly runMs?: number;
}

export type ProgramEnd = "completed" | "deadline" | "superseded" | "cancelled" | "gone" | "unheard";

/** Runs for as long as the chunk takes, or as its deadline says, unless stopped first. */
export function runProgram(
  { time, random }: ProgramWorld,
  sandbox: SimulatedSandbox,
  { token, process, chunkId }: Pick<Program, "token" | "process" | "chunkId">,
  { deadlineMs, runMs = deadlineMs }: SimulatedChunk,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    // The supervisor sees that a connection has closed, but not one that is half open.
    const isSeen = random() < 0.7;
    const forget = process.onCrash(() => {
      if (isSeen) finish("cancelled");
    });
    const cancel = () => finish("cancelled");
    const program: Program = { token, process, chunkId, stopped: false, stop: finish, leave };
    function leave(): void {
      forget();
      signal.removeEventListener("abort", cancel);
      resolve("unheard");
    }
    function finish(how: ProgramEnd): void {
      if (program.stopped) return;
      program.stopped = true;
      forget();
      signal.removeEventListener("abort", cancel);
      sandbox.programs = sandbox.programs.filter((other) => other !== program);
      resolve(how);
    }
    signal.addEventListener("abort", cancel);
    if (signal.aborted) return finish("cancelled");
    sandbox.programs.push(program);
    if (runMs <= deadlineMs) time.after(runMs, () => finish("completed"));
    else time.after(deadlineMs, () => finish("deadline"));
  });
}
