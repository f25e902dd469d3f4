/** What can be done to a request that the product sends, as networks, gateways and servers do it. */

import type { IncomingHttpHeaders } from "node:http";

/** The way that a request takes: E2B's API, the service inside a sandbox, a sandbox's supervisor, or the table. */
export type ServicePath = "control" | "envd" | "supervisor" | "table";

export interface GivenAnswer {
  readonly status: number;
  /** Default: E2B's form of an error, or for the table DynamoDB's, with `status` in it. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Fault =
  /** Answered by the proxy; the service never sees the request. */
  | ({ readonly kind: "answer" } & GivenAnswer)
  /** The service does what it was asked for, and the proxy answers in its place. */
  | ({ readonly kind: "answer_after" } & GivenAnswer)
  /** The connection is reset; the service never sees the request. */
  | { readonly kind: "reset_before" }
  /** The service does what it was asked for, and the connection is reset before the first byte of its answer. */
  | { readonly kind: "reset_after" }
  /** The answer ends after so many bytes of its body; 0 is after its headers. An answer that is shorter passes. */
  | { readonly kind: "cut"; readonly afterBytes: number }
  /** Never forwarded and never answered; ends when the caller leaves, or the proxy is closed. */
  | { readonly kind: "hang_before" }
  /** Forwarded at once and never answered. */
  | { readonly kind: "hang_after" }
  /** The answer's body comes in pieces of so many bytes, each after a pause. */
  | { readonly kind: "drip"; readonly bytes: number; readonly everyMs: number }
  /** Forwarded after a while, if the caller is still there. */
  | { readonly kind: "delay"; readonly ms: number }
  /** Forwarded after a while, although the caller may have given up: a creation that lands late. */
  | { readonly kind: "late_request"; readonly ms: number }
  /** Forwarded at once and answered after a while: a creation of which the caller never hears. */
  | { readonly kind: "late_answer"; readonly ms: number }
  /** The service sees the request twice, one after the other; the caller gets one of the two answers. */
  | { readonly kind: "twice"; readonly answered: "first" | "second" }
  /** The service's clock is off: `Date`, and the times in JSON answers of E2B's API, are moved by so much. */
  | { readonly kind: "skew"; readonly offsetMs: number }
  /** The body of the whole answer is replaced, say for lines that are doubled or not JSON. */
  | { readonly kind: "rewrite"; readonly body: (answer: string) => string };

export type FaultKind = Fault["kind"];

/** One request of the product, and what became of it so far. */
export interface SeenRequest {
  readonly path: ServicePath;
  readonly method: string;
  /** Path and query, such as `/v2/sandboxes?limit=100`. */
  readonly url: string;
  /** DynamoDB's operation, such as `UpdateItem`; null on the other paths. */
  readonly operation: string | null;
  /** The sandbox that it concerns: by its routing header, or by the path of E2B's API. */
  readonly sandboxId: string | null;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** Milliseconds since the proxy was started. */
  readonly atMs: number;
  /** What the service answered; null until it has. */
  status: number | null;
  /** What came back from the service so far. Empty when the proxy was told to keep no requests. */
  answer: string;
  /** How long it took until the connection or the answer ended; null until then. */
  wallMs: number | null;
  /** What was really done to it; null while nothing was. */
  injected: FaultKind | null;
  /** The service could not be reached, or broke off: not our doing. */
  serviceFailed: boolean;
}

/** A fault that happened. A rule that matched is not enough: an answer may have been too short to be cut. */
export interface InjectedFault {
  readonly rule: string;
  readonly kind: FaultKind;
  readonly request: SeenRequest;
}

/** An answer that is no stream, as a supervisor gives it to this very request. */
export function supervisorSays(status: number, body: object): (request: SeenRequest) => Fault {
  return ({ headers }) => ({
    kind: "answer",
    status,
    body: JSON.stringify({ ...body, nonce: headers["x-request-nonce"] }),
  });
}
