import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ApiError, notImplemented } from "./api-error.ts";
import { readJsonObject, sendJson } from "./http-body.ts";
import type { RequestCounts } from "./request-counts.ts";
import { listSandboxes } from "./sandbox-listing.ts";
import { toDetail, toHandle, toListed } from "./sandbox-record.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";
import { parseSandboxRequest, parseTimeoutMs } from "./sandbox-request.ts";

interface Reply {
  readonly status: number;
  readonly value?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Call {
  readonly sandboxId: string;
  readonly query: URLSearchParams;
  readonly body: Record<string, unknown>;
  readonly registry: SandboxRegistry;
}

type Route = (call: Call) => Reply | Promise<Reply>;

/** A connection without a timeout gets this one; it is E2B's documented trap. */
const CONNECT_TIMEOUT_S = 300;

const create: Route = async ({ body, registry }) => ({
  status: 201,
  value: toHandle(await registry.create(parseSandboxRequest(body))),
});

const connect: Route = async ({ sandboxId, body, registry }) => {
  if (body.memory === false) throw notImplemented("A resumption without memory");
  const timeoutMs = parseTimeoutMs(body.timeout, CONNECT_TIMEOUT_S);
  const { record, resumed } = await registry.connect(sandboxId, timeoutMs);
  return { status: resumed ? 201 : 200, value: toHandle(record) };
};

/** E2B's REST API, as much of it as there is here. `{id}` stands for a sandbox's id. */
const ROUTES: Readonly<Record<string, Route>> = {
  "POST /sandboxes": create,
  "POST /v2/sandboxes": create,
  "POST /sandboxes/{id}/connect": connect,
  "POST /v2/sandboxes/{id}/connect": connect,
  "GET /v2/sandboxes": ({ query, registry }) => {
    const { records, nextToken } = listSandboxes(registry.all(), query);
    const headers = nextToken === null ? {} : { "x-next-token": nextToken };
    return { status: 200, value: records.map(toListed), headers };
  },
  "GET /sandboxes/{id}": ({ sandboxId, registry }) => ({
    status: 200,
    value: toDetail(registry.find(sandboxId)),
  }),
  "POST /sandboxes/{id}/timeout": ({ sandboxId, body, registry }) => {
    if (body.timeout === undefined)
      throw new ApiError(400, 'Error when parsing request: "timeout" is missing');
    registry.setTimeout(sandboxId, parseTimeoutMs(body.timeout, 0));
    return { status: 204 };
  },
  "POST /sandboxes/{id}/pause": async ({ sandboxId, registry }) => {
    await registry.pause(sandboxId);
    return { status: 204 };
  },
  "DELETE /sandboxes/{id}": async ({ sandboxId, registry }) => {
    await registry.kill(sandboxId);
    return { status: 204 };
  },
};

export interface ControlPlaneOptions {
  readonly apiKey: string;
  readonly registry: SandboxRegistry;
  readonly counts: RequestCounts;
  readonly log: (line: string) => void;
}

/** The request listener of the control plane. Whatever it doesn't know is a 501. */
export function createControlPlane({ apiKey, registry, counts, log }: ControlPlaneOptions) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const url = new URL(request.url ?? "/", "http://local");
      const [, sandboxId = ""] = /^(?:\/v2)?\/sandboxes\/([^/]+)/.exec(url.pathname) ?? [];
      const shape = sandboxId === "" ? url.pathname : url.pathname.replace(`/${sandboxId}`, "/{id}");
      const name = `${request.method} ${shape}`;
      const route = Object.hasOwn(ROUTES, name) ? ROUTES[name] : undefined;
      counts.add(route === undefined ? "unknown" : name);
      const body = await readJsonObject(request);
      if (!isSameSecret(request.headers["x-api-key"], apiKey)) throw new ApiError(401, "Invalid API key");
      if (route === undefined) throw notImplemented(name);
      const { status, value, headers } = await route({ sandboxId, query: url.searchParams, body, registry });
      sendJson(response, status, value, headers);
    } catch (error) {
      answerError(response, error, log);
    }
  };
}

function answerError(response: ServerResponse, error: unknown, log: (line: string) => void): void {
  if (response.destroyed) return;
  if (error instanceof ApiError) {
    sendJson(response, error.status, { code: error.status, message: error.message });
    return;
  }
  log(`control plane: ${(error as Error).stack ?? error}`);
  sendJson(response, 500, { code: 500, message: "Internal server error" });
}

/** Compares in a time that tells nothing of how much was right. */
export function isSameSecret(given: string | string[] | undefined, secret: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return typeof given === "string" && timingSafeEqual(digest(given), digest(secret));
}
