/** A small client of the rewards endpoint, for this project's own commands: streams one batch. */

export interface SampleLine {
  readonly index: number;
  readonly reward: number | null;
  readonly status: string;
  readonly reason?: string;
  readonly verdicts?: readonly { readonly verdict: string }[];
  readonly fault?: { readonly code: string; readonly detail: string };
}

export interface GradedBatch {
  readonly rewards: readonly (number | null)[];
  readonly usage: {
    readonly workers: number;
    readonly worker_seconds: number;
    readonly workers_created: number;
    readonly retries: number;
    readonly programs_run: number;
  };
}

export interface EndpointAddress {
  readonly url: string;
  readonly apiKey: string;
  /** Gives up what is under way. */
  readonly signal?: AbortSignal;
}

/** The server refused; the message has its own words. */
export class RefusalError extends Error {
  readonly status: number;

  constructor(status: number, words: string) {
    super(`${status}: ${words}`);
    this.status = status;
  }
}

/** One call with a JSON answer. Throws a `RefusalError` when the server refuses. */
export async function callEndpoint(
  endpoint: EndpointAddress,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await fetch(new URL(path, endpoint.url), {
    method,
    headers: { authorization: `Bearer ${endpoint.apiKey}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: endpoint.signal ?? null,
  });
  if (!response.ok) throw await readRefusal(response);
  return response.json();
}

/** Grades a batch and calls `onResult` as each sample ends. Throws a `RefusalError` when the server refuses. */
export async function requestRewards(
  endpoint: EndpointAddress,
  batch: unknown,
  onResult: (result: SampleLine) => void = () => {},
): Promise<GradedBatch> {
  const response = await fetch(new URL("/v1/rewards", endpoint.url), {
    method: "POST",
    headers: {
      authorization: `Bearer ${endpoint.apiKey}`,
      "content-type": "application/json",
      accept: "application/x-ndjson",
    },
    body: JSON.stringify(batch),
    signal: endpoint.signal ?? null,
  });
  if (!response.ok || !response.body) throw await readRefusal(response);
  let summary: GradedBatch | undefined;
  for await (const line of splitLines(response.body)) {
    const event = JSON.parse(line);
    if (event.type === "result") onResult(event);
    else if (event.type === "summary") summary = event;
    else if (event.type === "error") throw new RefusalError(event.status, `${event.code}: ${event.detail}`);
  }
  if (!summary) throw new Error("the answer was cut: its last line is missing");
  return summary;
}

async function readRefusal(response: Response): Promise<RefusalError> {
  return new RefusalError(response.status, wordsOf(await response.text()));
}

/** What a problem says; anything else as it is. */
function wordsOf(text: string): string {
  try {
    const { code, detail } = JSON.parse(text);
    return code === undefined ? text : `${code}: ${detail}`;
  } catch {
    return text;
  }
}

async function* splitLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
