/** A batch whose right rewards are known, sent as any client would; and what must hold of every answer. */
import { expect } from "vitest";
import type { EndpointAddress } from "../../functions/local/rewards-client.ts";

const fence = (source: string) => `\`\`\`python\n${source}\n\`\`\``;
const doubling = "n = int(input())\nprint(n * 2)";

/** Programs that differ, so that each one runs; as many as one worker is asked for. */
const samples: readonly { readonly completion: string; readonly reward: number }[] = [
  { completion: fence(doubling), reward: 1 },
  { completion: fence("print(int(input()) + 2)"), reward: 1 / 3 },
  { completion: fence("print(7)"), reward: 0 },
  { completion: fence("print(1 // 0)"), reward: 0 },
  { completion: fence("print("), reward: 0 },
  { completion: "no program at all", reward: 0 },
];

/** What its first program runs for, where something is to happen meanwhile: longer than any act takes. */
const lingerS = 1;

const testCases = ["1", "2", "21"].map((input) => ({ input, output: String(Number(input) * 2) }));

export const rightRewards = samples.map(({ reward }) => reward);
/** What needs no worker has its reward whatever fails. */
const needsNoWorker = samples.map(({ completion }) => !completion.includes("```"));

export interface KnownAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    readonly rewards?: readonly (number | null)[];
    readonly results?: readonly { readonly fault?: { readonly code: string; readonly retryable: boolean } }[];
    readonly usage?: { readonly retries: number; readonly workers_created: number };
    readonly code?: string;
    readonly detail?: string;
  };
}

export interface AskOptions {
  readonly deadlineMs?: number;
  readonly key?: string;
  readonly runId?: string;
  /** Whether the batch takes seconds, so that something can happen in the middle of it. */
  readonly lingers?: boolean;
}

/** Sends the batch and checks that no reward is a wrong number. */
export async function askForRewards(
  { url, apiKey }: EndpointAddress,
  { deadlineMs = 25_000, key, runId, lingers = false }: AskOptions = {},
): Promise<KnownAnswer> {
  const response = await fetch(`${url}/v1/rewards`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    body: JSON.stringify({
      ...(runId === undefined ? {} : { run_id: runId }),
      tasks: { double: { test_cases: testCases } },
      samples: samples.map(({ completion }, index) => ({
        task: "double",
        completion:
          index === 0 && lingers ? fence(`import time\ntime.sleep(${lingerS})\n${doubling}`) : completion,
      })),
      options: { deadline_ms: deadlineMs },
    }),
  });
  const body = (await response.json()) as KnownAnswer["body"];
  const answer = { status: response.status, headers: response.headers, body };
  expectNoFalseNumber(answer);
  return answer;
}

/** Each reward is right or absent, and absent only with a fault that says why. */
function expectNoFalseNumber({ status, body }: KnownAnswer): void {
  if (status !== 200) {
    expect(body.rewards).toBeUndefined();
    return;
  }
  expect(body.rewards).toHaveLength(rightRewards.length);
  for (const [index, reward] of (body.rewards ?? []).entries()) {
    if (reward !== null) expect(reward, `sample ${index}`).toBe(rightRewards[index]);
    else expect(body.results?.[index]?.fault?.code, `sample ${index}`).toMatch(/^[a-z_]+$/);
  }
}

export type Outcome =
  | "right"
  /** Every sample that needs a worker ends in this fault; others in theirs. */
  | { readonly nulls: string }
  /** Some may end in this fault, all others are right. */
  | { readonly someNulls: string }
  /** The whole batch is refused. */
  | {
      readonly refused: string;
      readonly status?: number;
      readonly says?: RegExp;
      readonly retryAfterS?: number;
    };

export function expectOutcome({ status, headers, body }: KnownAnswer, outcome: Outcome): void {
  const told = JSON.stringify(body);
  if (outcome === "right") {
    expect({ status, rewards: body.rewards }, told).toEqual({ status: 200, rewards: rightRewards });
  } else if ("nulls" in outcome) {
    expect(status, told).toBe(200);
    const wanted = needsNoWorker.map((isFree) => (isFree ? undefined : outcome.nulls));
    expect(body.results?.map(({ fault }) => fault?.code)).toEqual(wanted);
  } else if ("someNulls" in outcome) {
    expect(status, told).toBe(200);
    const codes = body.results?.flatMap(({ fault }) => fault?.code ?? []) ?? [];
    expect(new Set([...codes, outcome.someNulls]), told).toEqual(new Set([outcome.someNulls]));
  } else {
    expect({ status, code: body.code }, told).toEqual({
      status: outcome.status ?? 503,
      code: outcome.refused,
    });
    if (outcome.says) expect(body.detail).toMatch(outcome.says);
    const retryAfter = headers.get("retry-after");
    if (outcome.refused === "misconfigured") expect(retryAfter).toBeNull();
    else if (status === 503) expect(Number(retryAfter)).toBeGreaterThanOrEqual(outcome.retryAfterS ?? 1);
  }
}
