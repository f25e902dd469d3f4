/** Requests to the endpoint, as a client sends them, and whether what comes back is a whole answer. */
import type { Refusal, SampleFault } from "./ledger.ts";

export interface Endpoint {
  readonly url: string;
  readonly apiKey: string;
}

export interface RewardsCall {
  readonly body: unknown;
  readonly stream: boolean;
  readonly idempotencyKey: string | null;
}

export type RewardsOutcome =
  | {
      readonly kind: "answered";
      readonly rewards: readonly (number | null)[];
      readonly faults: ReadonlyMap<number, SampleFault>;
    }
  | ({ readonly kind: "refused" } & Refusal)
  /** What came isn't what the interface promises. */
  | { readonly kind: "broken"; readonly what: string };

type Json = Readonly<Record<string, unknown>>;

export async function sendBatch(endpoint: Endpoint, call: RewardsCall): Promise<RewardsOutcome> {
  try {
    const response = await fetch(`${endpoint.url}/v1/rewards`, {
      method: "POST",
      headers: {
        ...authorize(endpoint),
        accept: call.stream ? "application/x-ndjson" : "application/json",
        ...(call.idempotencyKey === null ? {} : { "idempotency-key": call.idempotencyKey }),
      },
      body: JSON.stringify(call.body),
    });
    const text = await response.text();
    if (response.status !== 200) return readRefusal(response, text);
    return call.stream ? readLines(text) : readAnswer(JSON.parse(text));
  } catch (error) {
    return { kind: "broken", what: `${error}: ${(error as Error).cause ?? ""}` };
  }
}

/** Another call, for the status and the JSON of its answer; status 0 if there was none. */
export async function call(
  endpoint: Endpoint,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ readonly status: number; readonly body: Json; readonly refusal: Refusal }> {
  try {
    const response = await fetch(`${endpoint.url}${path}`, {
      method,
      headers: authorize(endpoint),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: JSON.parse(text), refusal: readRefusal(response, text) };
  } catch (error) {
    const refusal = { status: 0, code: "no answer", retryAfterS: null, detail: `${error}` };
    return { status: 0, body: {}, refusal };
  }
}

function authorize({ apiKey }: Endpoint): Record<string, string> {
  return { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
}

function readRefusal(response: Response, text: string): { readonly kind: "refused" } & Refusal {
  const { code = "none", detail = text.slice(0, 300) } = JSON.parse(text) as {
    code?: string;
    detail?: string;
  };
  const retry = response.headers.get("retry-after");
  return {
    kind: "refused",
    status: response.status,
    code,
    detail,
    retryAfterS: retry === null ? null : Number(retry),
  };
}

function readAnswer(answer: Json): RewardsOutcome {
  const rewards = answer.rewards as (number | null)[];
  const faults = new Map<number, SampleFault>();
  if (Array.isArray(answer.results)) {
    const results = answer.results as { reward: number | null; fault?: SampleFault }[];
    if (results.some(({ reward }, i) => reward !== rewards[i]))
      return broken("results that differ from rewards");
    results.forEach(({ fault }, i) => {
      if (fault !== undefined) faults.set(i, fault);
    });
  } else {
    for (const { index, ...fault } of answer.faults as (SampleFault & { index: number })[])
      faults.set(index, fault);
  }
  return { kind: "answered", rewards, faults };
}

function readLines(text: string): RewardsOutcome {
  if (!text.endsWith("\n")) return broken("a stream that was cut in a line");
  const lines = text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Json);
  const last = lines.at(-1);
  if (last?.type === "error") {
    const {
      status,
      code,
      detail,
      retry_after_s: retryAfterS = null,
    } = last as Json & Record<"code" | "detail", string>;
    return {
      kind: "refused",
      status: Number(status),
      code,
      detail,
      retryAfterS: retryAfterS as number | null,
    };
  }
  if (last?.type !== "summary") return broken("a stream without its last line");
  const rewards = last.rewards as (number | null)[];
  const results = lines.filter(({ type }) => type === "result") as {
    index: number;
    reward: number | null;
    fault?: SampleFault;
  }[];
  const faults = new Map(
    results.flatMap(({ index, fault }) => (fault === undefined ? [] : [[index, fault] as const])),
  );
  const told = new Map(results.map(({ index, reward }) => [index, reward]));
  if (results.length !== rewards.length || told.size !== rewards.length)
    return broken("a stream that lacks a result");
  if (rewards.some((reward, i) => told.get(i) !== reward))
    return broken("a stream whose results differ from its rewards");
  return { kind: "answered", rewards, faults };
}

function broken(what: string): RewardsOutcome {
  return { kind: "broken", what };
}
