/**
 * The product under everything at once, for a given time: trainers with right, broken and hostile programs, faults on
 * every way out of it, sandboxes that die, passes of the sweep in between. Every reward is held against what it must
 * be, and in the end nothing may be left.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { listProcessTree } from "../bench/process-tree.ts";
import { call } from "./endpoint.ts";
import { openGate } from "./gate.ts";
import { findGrowth, slopePerMinute, type TimedVitals } from "./growth.ts";
import { haveIncidents } from "./incidents.ts";
import { type Ledger, openLedger } from "./ledger.ts";
import { createRandom } from "./random.ts";
import { type StackUnderTest, startStackUnderTest, type Vitals } from "./stack-under-test.ts";
import { finish, type TrainerSetup, train } from "./trainer.ts";
import { openSky } from "./weather.ts";

export interface SoakOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Default: 4. */
  readonly trainers?: number;
  /** Default: 6. */
  readonly slots?: number;
  /** How often every sandbox ends at once; then nothing else fails. Default: 0. */
  readonly incidents?: number;
  readonly say?: (line: string) => void;
}

export type SoakReport = Awaited<ReturnType<typeof runSoak>>;

const weatherEveryMs = 5_000;
const killEveryMs = 5_000;
const sweepEveryMs = 7_000;
/** What is under way when the time is up may be a batch with its retries. */
const lastBatchesMs = 180_000;
/** A creation that got no answer is waited for before its slot is taken back. */
const healingMs = 150_000;

export async function runSoak(options: SoakOptions) {
  const { seconds, seed, trainers = 4, slots = 6, incidents = 0, say = () => {} } = options;
  const startedMs = performance.now();
  const nowS = () => Number(((performance.now() - startedMs) / 1_000).toFixed(1));
  const ledger = openLedger(nowS);
  const processesBefore = new Set(listProcessTree(process.pid));
  const said = keepSaid(ledger);
  const stack = await startStackUnderTest({ slots, seed, onLine: said.hear });
  say(`the stack is up after ${nowS()} s`);
  const over = new AbortController();
  const openRuns = new Set<string>(["default"]);
  const gate = openGate();
  const troubles = incidents > 0 ? [] : openTroubles(stack, ledger, seed, over.signal);
  const setup = { endpoint: stack, ledger, over: over.signal, openRuns, gate, nullsMayLast: incidents === 0 };
  const training = Array.from({ length: trainers }, (_, i) =>
    train({ ...setup, name: `trainer-${i}`, seed: `${seed} trainer ${i}` }),
  );
  const vitals: TimedVitals[] = [];
  const plan = { count: incidents, seconds, random: createRandom(`${seed} incidents`) };
  const happenings = [
    ...troubles,
    haveIncidents(stack, ledger, gate, plan, over.signal),
    every(sweepEveryMs, over.signal, () => sweep(stack, ledger)),
    every(Math.max(2_000, seconds * 25), over.signal, async () => {
      vitals.push({ atS: nowS(), ...(await stack.vitals()) });
    }),
  ];
  await Promise.race([sleep(seconds * 1_000), untilEnded(stack, ledger, over.signal)]);
  over.abort();
  say(`after ${nowS()} s the weather is calm; the last batches end`);
  await within(lastBatchesMs, ledger, "batches did not end", Promise.all([...training, ...happenings]));
  if (ledger.counts.incidents < incidents)
    ledger.violate("incidents did not happen", incidents - ledger.counts.incidents);
  const duration = nowS();
  const healedS = await leaveNothing({ ...setup, name: "the last", seed: "" }, stack, nowS);
  const quiet = await quietVitals(stack);
  const injected = stack.proxy.injectedCounts();
  const requests = stack.proxy.counts();
  const sandboxesLeft = stack.e2bServer.sandboxCounts().running + stack.e2bServer.sandboxCounts().paused;
  const exitCode = await stack.stop();
  if (exitCode !== 0) ledger.violate("the stack's end", exitCode);
  const processesLeft = listProcessTree(process.pid).filter((pid) => !processesBefore.has(pid)).length;
  if (processesLeft > 0) ledger.violate("processes are left", processesLeft);
  for (const problem of findGrowth(vitals, quiet)) ledger.violate("growth", problem);
  const { violations: violationCount, ...counts } = ledger.counts;
  return {
    seed,
    seconds: duration,
    ...counts,
    requests,
    injected,
    injectedTotal: Object.values(injected).reduce((sum, count) => sum + count, 0),
    faultsLogged: said.counts,
    memory: describeMemory(vitals, quiet),
    vitals,
    healedS,
    sandboxesLeft,
    processesLeft,
    violationCount,
    violations: ledger.violations,
  };
}

/** Faults on every way out of the product, and sandboxes that die, until the soak is over. */
function openTroubles(
  stack: StackUnderTest,
  ledger: Ledger,
  seed: number,
  over: AbortSignal,
): Promise<void>[] {
  const sky = openSky(stack.proxy, createRandom(`${seed} weather`));
  over.addEventListener("abort", () => sky.calmDown(), { once: true });
  return [
    every(weatherEveryMs, over, async () => sky.change()),
    every(killEveryMs, over, killSome(stack, ledger, `${seed} kills`)),
  ];
}

/** What the product says of faults is counted; what it says of itself must not happen. */
function keepSaid(ledger: Ledger) {
  const counts: Record<string, number> = {};
  const hear = (line: string) => {
    const { level, code, detail, message } = readLine(line);
    if (level === "error" || message === null) ledger.violate("the product said", line.slice(0, 2_000));
    const words = [code ?? message, detail?.replace(/\d+|\b[\w-]*\d[\w-]*\b/g, "#").slice(0, 120)];
    const what = words.filter(Boolean).join(": ");
    counts[what] = (counts[what] ?? 0) + 1;
  };
  return { counts, hear };
}

function readLine(line: string): {
  readonly level?: string;
  readonly code?: string;
  readonly detail?: string;
  readonly message: string | null;
} {
  try {
    return { message: "", ...JSON.parse(line) };
  } catch {
    return { message: line.startsWith("e2b: ") ? "e2b" : null };
  }
}

async function every(ms: number, over: AbortSignal, act: () => Promise<unknown>): Promise<void> {
  for (;;) {
    await sleep(ms, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return;
    await act();
  }
}

function killSome(stack: StackUnderTest, ledger: Ledger, seed: string) {
  const random = createRandom(seed);
  return async () => {
    if (await stack.killSandbox((count) => random.integer(0, Math.max(0, count - 1))))
      ledger.note("sandbox killed");
  };
}

async function sweep(stack: StackUnderTest, ledger: Ledger): Promise<void> {
  const { status, refusal } = await call(stack, "POST", "/local/sweep");
  if (status === 200) ledger.note("pool swept");
  else ledger.noteRefusal(refusal);
}

async function untilEnded(stack: StackUnderTest, ledger: Ledger, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const ended = stack.ended();
    if (ended !== undefined) return ledger.violate("the product ended", ended);
    await sleep(500, undefined, { signal: over }).catch(() => {});
  }
}

async function within(ms: number, ledger: Ledger, what: string, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  const late = sleep(ms, "late" as const, { signal: done.signal }).catch(() => null);
  if ((await Promise.race([work, late])) === "late") ledger.violate(what, `within ${ms} ms`);
  done.abort();
}

/** Finishes every run, and sweeps until no sandbox is left; how many seconds that took, or null if it never came. */
async function leaveNothing(
  setup: TrainerSetup,
  stack: StackUnderTest,
  nowS: () => number,
): Promise<number | null> {
  const startedS = nowS();
  while (nowS() - startedS < healingMs / 1_000) {
    for (const runId of [...setup.openRuns]) if (await finish(setup, runId)) setup.openRuns.delete(runId);
    const { running, paused } = stack.e2bServer.sandboxCounts();
    if (running + paused === 0 && setup.openRuns.size === 0) return Number((nowS() - startedS).toFixed(1));
    await sweep(stack, setup.ledger);
    await sleep(1_000);
  }
  const listed = stack.e2bServer.sandboxCounts();
  setup.ledger.violate("sandboxes are left", { listed, runs: [...setup.openRuns] });
  return null;
}

/** Once nothing is asked of it any more; what it keeps for the next request is a few connections. */
async function quietVitals(stack: StackUnderTest): Promise<Vitals> {
  const first = await stack.vitals();
  for (let tries = 0; tries < 10; tries += 1) {
    await sleep(1_000);
    const again = await stack.vitals();
    if (again.sockets >= first.sockets && tries > 4) return again;
  }
  return stack.vitals();
}

function describeMemory(vitals: readonly TimedVitals[], quiet: Vitals) {
  const toMib = (bytes: number | undefined) => Math.round((bytes ?? 0) / 1_048_576);
  const { heapBytes: startHeap, rssBytes: startRss } = vitals[0] ?? quiet;
  return {
    heapMib: { start: toMib(startHeap), end: toMib(quiet.heapBytes) },
    rssMib: { start: toMib(startRss), end: toMib(quiet.rssBytes) },
    heapKibPerMinute: Math.round(slopePerMinute(vitals, "heapBytes") / 1_024),
    quiet,
  };
}
