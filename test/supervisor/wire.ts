/**
 * A bare client of the supervisor's HTTP interface, without the product's own adapter in between: what it sends is
 * what a test says, and every line that comes back is kept with the time of its arrival.
 */
import http from "node:http";

export interface Limits {
  time_ms: number;
  memory_mib: number;
  output_bytes: number;
}

export interface Program {
  id: string;
  source: string;
  mode?: "main" | "call" | "tests" | "checked";
  /** The name of one of the chunk's checkers. */
  checker?: string;
  inputs: string[];
  limits: Limits;
}

export interface Chunk {
  fencing_token: number;
  chunk_id: string;
  deadline_ms: number;
  checkers?: Record<string, string>;
  programs: Program[];
}

/** One line of an answer. `at_ms` is the local monotonic time at which it arrived. */
export interface Line {
  type: "started" | "ended" | "syntax_error" | "invalid_task" | "beat" | "summary";
  at_ms: number;
  chunk?: string;
  program?: string;
  case?: number;
  status?: string;
  exit_code?: number;
  signal?: string;
  detail?: string;
  stdout?: string;
  stdout_base64?: string;
  result?: string;
  stderr_tail?: string;
  wall_ms?: number;
  cpu_ms?: number;
  peak_rss_kib?: number;
  reason?: string;
  cases?: number;
}

/** `body` is the parsed JSON of an answer that is not a stream; `cut` says that the connection broke before its end. */
export interface Answer {
  status: number;
  lines: Line[];
  body: Record<string, unknown>;
  cut: boolean;
}

/** A request under way: `until` waits for a line that fits, `abort` closes the connection. */
export interface Exchange {
  readonly lines: Line[];
  readonly answer: Promise<Answer>;
  until(fits: (line: Line) => boolean): Promise<Line>;
  abort(): void;
}

/** Where to ask, and with which secret; none for a stranger. */
export interface Endpoint {
  port: number;
  secret?: string;
}

interface RequestOptions {
  method: string;
  path: string;
  body?: string | Buffer;
  headers?: http.OutgoingHttpHeaders;
}

/** Sends one request on a connection of its own. A failure before the answer's head rejects `answer`. */
export function sendRequest(endpoint: Endpoint, options: RequestOptions): Exchange {
  const lines: Line[] = [];
  const waiting: {
    fits: (line: Line) => boolean;
    found: (line: Line) => void;
    lost: (why: Error) => void;
  }[] = [];
  const request = http.request({
    host: "127.0.0.1",
    port: endpoint.port,
    method: options.method,
    path: options.path,
    agent: false,
    headers: {
      ...(endpoint.secret && { authorization: `Bearer ${endpoint.secret}` }),
      ...options.headers,
    },
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (response) => collect(response, lines, announce, resolve));
  });
  answer
    .catch(() => {})
    .then(() => {
      for (const one of waiting.splice(0)) one.lost(new Error(`no such line in ${JSON.stringify(lines)}`));
    });
  request.end(options.body);

  function announce(line: Line): void {
    lines.push(line);
    for (const one of waiting.filter(({ fits }) => fits(line))) {
      waiting.splice(waiting.indexOf(one), 1);
      one.found(line);
    }
  }

  return {
    lines,
    answer,
    until: (fits) =>
      new Promise((found, lost) => {
        const seen = lines.find(fits);
        if (seen) found(seen);
        else waiting.push({ fits, found, lost });
      }),
    abort: () => request.destroy(),
  };
}

function collect(
  response: http.IncomingMessage,
  lines: Line[],
  announce: (line: Line) => void,
  resolve: (answer: Answer) => void,
): void {
  const isStream = response.headers["content-type"] === "application/x-ndjson";
  let rest = "";
  let text = "";
  response.setEncoding("utf8");
  response.on("data", (piece: string) => {
    if (!isStream) {
      text += piece;
      return;
    }
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) announce({ ...JSON.parse(part), at_ms: performance.now() });
  });
  response.on("error", () => {});
  response.on("close", () =>
    resolve({
      status: response.statusCode ?? 0,
      lines,
      body: text === "" ? {} : JSON.parse(text),
      cut: !response.complete || rest !== "",
    }),
  );
}

/** Sends a chunk; the answer's lines can be watched as they come. */
export function openChunk(endpoint: Endpoint, chunk: Chunk): Exchange {
  return sendRequest(endpoint, { method: "POST", path: "/v1/execute", body: JSON.stringify(chunk) });
}

export function cancelToken(endpoint: Endpoint, fencingToken: number): Promise<Answer> {
  const body = JSON.stringify({ fencing_token: fencingToken });
  return sendRequest(endpoint, { method: "POST", path: "/v1/cancel", body }).answer;
}

export function readHealth(endpoint: Endpoint): Promise<Answer> {
  return sendRequest(endpoint, { method: "GET", path: "/v1/health" }).answer;
}
