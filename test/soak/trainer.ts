/**
 * One trainer of many: registers runs, sends batches, beats, finishes; waits out refusals and sends again what the
 * platform failed to grade. Now and then it cancels, or finishes in the middle.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { call, type Endpoint, type RewardsCall, type RewardsOutcome, sendBatch } from "./endpoint.ts";
import type { Gate } from "./gate.ts";
import type { Ledger, SampleFault } from "./ledger.ts";
import { type KnownSample, makeSample } from "./programs.ts";
import { createRandom, type Random } from "./random.ts";

export interface TrainerSetup {
  readonly endpoint: Endpoint;
  readonly ledger: Ledger;
  readonly name: string;
  readonly seed: string;
  /** Once aborted no batch begins any more; what is under way ends. */
  readonly over: AbortSignal;
  /** Ids of the runs that may be there, until they are finished for sure. */
  readonly openRuns: Set<string>;
  readonly gate: Gate;
  /** Whether a null may last: where nothing but single incidents happens, what is sent again is graded. */
  readonly nullsMayLast: boolean;
}

/** How often what is null is sent again, and how long refusals are waited out. */
const mostRounds = 4;
const patienceMs = 90_000;
const longestPauseMs = 3_000;

export async function train(setup: TrainerSetup): Promise<void> {
  const random = createRandom(setup.seed);
  for (let n = 0; !setup.over.aborted; n += 1) await trainOnce(setup, random, `${setup.name}-${n}`);
}

async function trainOnce(setup: TrainerSetup, random: Random, runId: string): Promise<void> {
  const { endpoint, ledger, openRuns } = setup;
  const isDefault = random.chance(0.1);
  const run = isDefault ? "default" : runId;
  openRuns.add(run);
  const wish = { name: runId, workers: random.integer(1, 2), metadata: { from: "soak" } };
  if (!isDefault && !(await persist(setup, () => call(endpoint, "PUT", `/v1/runs/${run}`, wish), [200, 201])))
    return;
  const steps = random.integer(2, 6);
  for (let step = 0; step < steps && !setup.over.aborted; step += 1) {
    const both = [step, ...(random.chance(0.25) ? [step + 0.5] : [])];
    await Promise.all(both.map((each) => gradeStep(setup, random, run, `${runId}/${each}`)));
    if (!isDefault)
      await persist(setup, () => call(endpoint, "POST", `/v1/runs/${run}/heartbeat`, {}), [200]);
  }
  if (isDefault || random.chance(0.1)) return void ledger.note("run left to itself");
  if (await finishMaybeUnderBatch(setup, random, run)) openRuns.delete(run);
}

/** Finishes a run, sometimes in the middle of a batch; whether nothing of it is left. */
async function finishMaybeUnderBatch(setup: TrainerSetup, random: Random, runId: string): Promise<boolean> {
  if (!random.chance(0.15)) return finish(setup, runId);
  const leave = await setup.gate.enter();
  try {
    const late = finishedUnderIt(setup, random, runId, `${runId}/late`);
    await sleep(random.integer(0, 800));
    const isGone = await finish(setup, runId);
    await late;
    return isGone;
  } finally {
    leave();
  }
}

/** Finishes a run; whether nothing of it is left. */
export async function finish(setup: TrainerSetup, runId: string): Promise<boolean> {
  const answer = await persist(setup, () => call(setup.endpoint, "DELETE", `/v1/runs/${runId}`), [200, 404]);
  setup.ledger.note("run finished");
  if (answer === null || answer.status === 404) return answer !== null;
  const left = answer.body.remaining_sandboxes as string[];
  if (left.length > 0) setup.ledger.note("run finished, sandboxes remain for now");
  return left.length === 0;
}

/** A batch in the middle of which its run is finished: no answer is as good as one. */
async function finishedUnderIt(setup: TrainerSetup, random: Random, runId: string, key: string) {
  const samples = makeBatch(random);
  const outcome = await sendBatch(setup.endpoint, describeCall(setup, random, runId, key, samples));
  if (outcome.kind === "refused" && outcome.code === "run_finished")
    return setup.ledger.note("batch of a finished run");
  record(setup, samples, outcome);
}

async function gradeStep(setup: TrainerSetup, random: Random, runId: string, name: string): Promise<void> {
  const leave = await setup.gate.enter();
  await gradeUntilKnown(setup, random, runId, name).finally(leave);
}

async function gradeUntilKnown(setup: TrainerSetup, random: Random, runId: string, name: string) {
  const { endpoint, ledger } = setup;
  let open = makeBatch(random);
  const lost = new Set<KnownSample>();
  let patienceEndsMs = performance.now() + patienceMs;
  for (let round = 0; open.length > 0 && round < mostRounds; ) {
    const request = describeCall(setup, random, runId, `${name}/${round}`, open);
    const strikes = setup.gate.strikes();
    const sent = sendBatch(endpoint, request);
    if (request.idempotencyKey !== null && random.chance(0.1)) await sendTwin(setup, request, open);
    if (request.idempotencyKey !== null && random.chance(0.08)) {
      const [outcome] = await Promise.all([sent, cancelSoon(setup, random, request.idempotencyKey)]);
      if (outcome.kind === "refused" && outcome.code === "cancelled") return ledger.note("batch cancelled");
      record(setup, open, outcome);
      return;
    }
    const outcome = await sent;
    if (outcome.kind === "refused" && outcome.status !== 200) {
      ledger.noteRefusal(outcome);
      const isOver = setup.over.aborted || performance.now() > patienceEndsMs || outcome.retryAfterS === null;
      if (isOver) return ledger.note("batch given up");
      await sleep(Math.min(longestPauseMs, outcome.retryAfterS * 1_000));
      continue;
    }
    const again = record(setup, open, outcome);
    if (outcome.kind === "answered") {
      // What strikes while they are sent again is their first incident once more.
      countNulls(setup, open, outcome, { lost, isStruck: setup.gate.strikes() !== strikes });
    }
    if (
      outcome.kind === "answered" &&
      again.length === 0 &&
      request.idempotencyKey !== null &&
      random.chance(0.2)
    )
      await replay(setup, request, open);
    open = again;
    round += 1;
    patienceEndsMs = performance.now() + patienceMs;
    if (setup.over.aborted && round > 1) break;
  }
  ledger.counts.nullsInTheEnd += open.length;
}

/** Nulls by how often they were sent; one that lasts is a violation, unless everything fails all the time. */
function countNulls(
  { ledger, nullsMayLast }: TrainerSetup,
  samples: readonly KnownSample[],
  { rewards, faults }: Extract<RewardsOutcome, { kind: "answered" }>,
  { lost, isStruck }: { readonly lost: Set<KnownSample>; readonly isStruck: boolean },
): void {
  samples.forEach((sample, i) => {
    const fault: SampleFault | undefined = faults.get(i);
    // A starved program says that this machine is busy, not that a sandbox ended.
    if (rewards[i] !== null || fault?.code === "starved") return;
    const isAgain = lost.has(sample) && !isStruck;
    if (isAgain) ledger.counts.nullsAfterResend += 1;
    else ledger.counts.nullsAtFirst += 1;
    if ((isAgain || fault?.retryable !== true) && !nullsMayLast)
      ledger.violate("a null lasts", { name: sample.name, fault });
  });
  samples.forEach((sample, i) => {
    if (rewards[i] === null && faults.get(i)?.code !== "starved") lost.add(sample);
  });
}

/** The same request while the first is under way: it is told to wait, or answered from the record. */
async function sendTwin(
  setup: TrainerSetup,
  request: RewardsCall,
  samples: readonly KnownSample[],
): Promise<void> {
  setup.ledger.note("batch sent twice at once");
  record(setup, samples, await sendBatch(setup.endpoint, request));
}

/** The same request once it is answered: whichever way it is asked for, the rewards are the same, and nothing runs. */
async function replay(
  setup: TrainerSetup,
  request: RewardsCall,
  samples: readonly KnownSample[],
): Promise<void> {
  setup.ledger.note("batch sent again under its key");
  const requests = [request, { ...request, stream: !request.stream }];
  const outcomes = await Promise.all(requests.map((each) => sendBatch(setup.endpoint, each)));
  for (const outcome of outcomes) record(setup, samples, outcome);
}

async function cancelSoon({ endpoint, ledger }: TrainerSetup, random: Random, key: string): Promise<void> {
  await sleep(random.integer(0, 1_500));
  const { status, refusal } = await call(endpoint, "DELETE", `/v1/batches/${encodeURIComponent(key)}`);
  if (status !== 200 && status !== 404) ledger.noteRefusal(refusal);
}

/** Notes an answer's rewards; what it makes sense to send again. */
function record(
  { ledger }: TrainerSetup,
  samples: readonly KnownSample[],
  outcome: Awaited<ReturnType<typeof sendBatch>>,
): KnownSample[] {
  if (outcome.kind === "refused") {
    ledger.noteRefusal(outcome);
    return [];
  }
  ledger.counts.batches += 1;
  if (outcome.kind === "broken") {
    ledger.violate("broken answer", outcome.what);
    return [];
  }
  if (outcome.rewards.length !== samples.length)
    ledger.violate("rewards are missing", outcome.rewards.length);
  return samples.filter((sample, i) => {
    const [reward = null, fault] = [outcome.rewards[i], outcome.faults.get(i)];
    ledger.noteReward(sample, reward, fault);
    return reward === null && fault?.retryable === true;
  });
}

function makeBatch(random: Random): KnownSample[] {
  const samples = Array.from({ length: random.integer(1, 16) }, () => makeSample(random));
  // Some are there twice, as samples of one group often are.
  return random.chance(0.3) ? [...samples, ...samples.slice(0, 3)] : samples;
}

function describeCall(
  { nullsMayLast }: TrainerSetup,
  random: Random,
  runId: string,
  key: string,
  samples: readonly KnownSample[],
): RewardsCall {
  const isShared = random.chance(0.5);
  const tasks = Object.fromEntries(isShared ? samples.map(({ task }, i) => [`task ${i}`, task]) : []);
  return {
    stream: random.chance(0.5),
    idempotencyKey: random.chance(0.5) ? key : null,
    body: {
      ...(runId === "default" ? {} : { run_id: runId }),
      tasks,
      samples: samples.map(({ task, completion }, i) => ({
        task: isShared ? `task ${i}` : task,
        completion: random.chance(0.5) ? completion : [{ role: "assistant", content: completion }],
      })),
      options: {
        detail: random.pick(["rewards", "verdicts", "output"]),
        // Where a null must not last, it must not come of a deadline either.
        deadline_ms: (nullsMayLast ? random.integer(15, 40) : random.integer(60, 120)) * 1_000,
      },
    },
  };
}

type CallAnswer = Awaited<ReturnType<typeof call>>;

/** Repeats a call that is refused for now; null when it stays so. */
async function persist(
  { ledger }: Pick<TrainerSetup, "ledger">,
  ask: () => Promise<CallAnswer>,
  expected: readonly number[],
): Promise<CallAnswer | null> {
  const endsAtMs = performance.now() + patienceMs;
  while (performance.now() < endsAtMs) {
    const answer = await ask();
    if (expected.includes(answer.status)) return answer;
    ledger.noteRefusal(answer.refusal);
    if (answer.refusal.retryAfterS === null) return null;
    await sleep(Math.min(longestPauseMs, answer.refusal.retryAfterS * 1_000));
  }
  ledger.note("call given up");
  return null;
}
