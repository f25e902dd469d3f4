/**
 * A proxy between the product and the services that it uses, which fails by rules.
 *
 * Theory of operation. One HTTP server per service: E2B's API, the way into sandboxes (whose routing header tells the
 * service inside from a supervisor), and the table. Each request is read whole, then the first rule that claims it
 * decides its fate; without one it passes, its answer streamed. A caller who leaves takes the forwarded request along,
 * unless the fault says otherwise. The proxy adds no retries and hides no failure of the service: that one reaches the
 * caller as a cut connection and is marked `serviceFailed`.
 *
 * ```ts
 * const proxy = await startFaultProxy({ control: e2b.apiUrl, sandbox: e2b.sandboxUrl, table: dynamoDb.endpoint });
 * const busy = proxy.add({
 *   path: "control",
 *   match: { method: "POST", url: "/v2/sandboxes", nth: [1, 2] },
 *   fault: { kind: "answer", status: 429, headers: { "retry-after": "1" } },
 * });
 * const stack = await startLocalStack({ port: 0, ...readEnvironment({ E2B_API_KEY: key, ...proxy.environment }) });
 * …
 * expect(busy.injected).toHaveLength(2);
 * ```
 */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { FaultKind, InjectedFault, SeenRequest, ServicePath } from "./fault.ts";
import { type Exchange, handle } from "./injection.ts";
import { type ActiveRule, activateRule, type Rule } from "./rules.ts";

export interface FaultProxyOptions {
  /** E2B's API (`E2B_API_URL`). Without it there is no proxy before it; the same of the others. */
  readonly control?: string;
  /** The way into sandboxes (`E2B_SANDBOX_URL`). */
  readonly sandbox?: string;
  /** DynamoDB (`DYNAMODB_ENDPOINT`). */
  readonly table?: string;
  /** Of rules with a probability. Default: 1. */
  readonly seed?: number;
  /** Whether requests, answers and injected faults are kept; counts always are. Default: true. */
  readonly keep?: boolean;
  /** Called with every piece of an answer that passes. */
  readonly onAnswer?: (request: SeenRequest) => void;
}

/** A rule at work. */
export interface AddedRule {
  /** What it really did, in order. */
  readonly injected: readonly InjectedFault[];
  remove(): void;
}

export interface FaultProxy {
  /** Where the product should go instead of to the services; the address of one without a proxy is empty. */
  readonly controlUrl: string;
  readonly sandboxUrl: string;
  readonly tableUrl: string;
  /** The same as variables for the product: those of the services that have a proxy. */
  readonly environment: Readonly<Record<string, string>>;
  /** All requests in order, if kept. */
  readonly requests: SeenRequest[];
  /** Faults that really happened, in order, if kept. */
  readonly injected: InjectedFault[];
  /** How many requests took each path. */
  counts(): Readonly<Record<ServicePath, number>>;
  /** How many faults really happened, by path and kind, such as `control answer`. */
  injectedCounts(): Readonly<Record<string, number>>;
  /** Connections of callers that are open now. */
  openConnections(): Promise<number>;
  /** Adds a rule after those that are there; of several that claim a request the first decides. */
  add(rule: Rule): AddedRule;
  /** Removes all rules. What hangs goes on hanging. */
  clear(): void;
  /** Cuts everything off, also what hangs. */
  close(): Promise<void>;
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const { seed = 1, keep = true } = options;
  const startedAtMs = performance.now();
  const nowMs = () => performance.now() - startedAtMs;
  const rules = new Map<ActiveRule, InjectedFault[]>();
  const requests: SeenRequest[] = [];
  const injected: InjectedFault[] = [];
  const counts: Record<ServicePath, number> = { control: 0, envd: 0, supervisor: 0, table: 0 };
  const injectedCounts: Record<string, number> = {};
  const servers: http.Server[] = [];
  const closing = new AbortController();
  const agent = new http.Agent({ keepAlive: true, timeout: 1_000 }); // shorter than any service keeps a connection

  const record = (rule: ActiveRule, kind: FaultKind, request: SeenRequest) => {
    const fault = { rule: rule.name, kind, request };
    request.injected = kind;
    const name = `${request.path} ${kind}`;
    injectedCounts[name] = (injectedCounts[name] ?? 0) + 1;
    if (!keep) return;
    injected.push(fault);
    rules.get(rule)?.push(fault);
  };

  const decide = async (request: SeenRequest): Promise<Pick<Exchange, "fault" | "onInjected">> => {
    for (const rule of rules.keys()) {
      const nth = rule.claims(request);
      if (nth === null) continue;
      const fault = typeof rule.fault === "function" ? await rule.fault(request, nth) : rule.fault;
      return { fault, onInjected: (kind) => record(rule, kind, request) };
    }
    return { fault: null, onInjected: () => {} };
  };

  const serve = async (service: Service, target: string): Promise<string> => {
    const server = http.createServer(
      { requestTimeout: 0, keepAliveTimeout: 60_000 },
      async (incoming, outgoing) => {
        const startedMs = nowMs();
        const body = await buffer(incoming).catch(() => null);
        if (body === null) return; // the caller left in the middle of its own request
        const request = describeRequest(service, incoming, body, startedMs);
        counts[request.path] += 1;
        if (keep) requests.push(request);
        outgoing.on("error", () => {});
        outgoing.once("close", () => {
          request.wallMs = nowMs() - startedMs;
        });
        const onAnswer = (piece: Buffer) => {
          if (keep) request.answer += piece.toString();
          options.onAnswer?.(request);
        };
        const verdict = await decide(request);
        await handle({
          ...verdict,
          request,
          incoming,
          body,
          outgoing,
          target,
          agent,
          closing: closing.signal,
          onAnswer,
        });
      },
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    servers.push(server);
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  };

  const serveIfGiven = (service: Service) => {
    const target = options[service];
    return target === undefined ? "" : serve(service, target);
  };
  const [controlUrl, sandboxUrl, tableUrl] = [
    await serveIfGiven("control"),
    await serveIfGiven("sandbox"),
    await serveIfGiven("table"),
  ];
  return {
    controlUrl,
    sandboxUrl,
    tableUrl,
    environment: {
      ...(controlUrl && { E2B_API_URL: controlUrl }),
      ...(sandboxUrl && { E2B_SANDBOX_URL: sandboxUrl }),
      ...(tableUrl && { DYNAMODB_ENDPOINT: tableUrl }),
    },
    requests,
    injected,
    counts: () => ({ ...counts }),
    injectedCounts: () => ({ ...injectedCounts }),
    openConnections: async () =>
      (await Promise.all(servers.map(countConnections))).reduce((a, b) => a + b, 0),
    add(rule) {
      const active = activateRule(rule, seed, nowMs);
      const own: InjectedFault[] = [];
      rules.set(active, own);
      return { injected: own, remove: () => void rules.delete(active) };
    },
    clear: () => rules.clear(),
    async close() {
      rules.clear();
      closing.abort();
      agent.destroy();
      await Promise.all(servers.splice(0).map(stopServer));
    },
  };
}

type Service = "control" | "sandbox" | "table";

const envdPort = "49983";

function describeRequest(
  service: Service,
  incoming: http.IncomingMessage,
  body: Buffer,
  atMs: number,
): SeenRequest {
  const { method = "GET", url = "/", headers } = incoming;
  const port = headers["e2b-sandbox-port"];
  const inside: ServicePath = port === envdPort ? "envd" : "supervisor";
  const [, idInPath] = /^(?:\/v2)?\/sandboxes\/([^/?]+)/.exec(url) ?? [];
  const sandboxId =
    service === "sandbox" ? headers["e2b-sandbox-id"] : service === "control" ? idInPath : null;
  return {
    path: service === "sandbox" ? inside : service,
    method,
    url,
    operation: service === "table" ? (String(headers["x-amz-target"]).split(".").at(-1) ?? null) : null,
    sandboxId: typeof sandboxId === "string" ? sandboxId : null,
    headers,
    body: body.toString(),
    atMs,
    status: null,
    answer: "",
    wallMs: null,
    injected: null,
    serviceFailed: false,
  };
}

function countConnections(server: http.Server): Promise<number> {
  return new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

async function stopServer(server: http.Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
