import { randomUUID } from "node:crypto";
import type { MiddlewareHandler } from "hono";

export interface RequestVariables {
  readonly requestId: string;
}

/** Ids of common tracers pass; nothing that could forge a log line or a header does. */
const WELL_FORMED = /^[A-Za-z0-9._:=@+/-]{1,128}$/;

export function isRequestId(text: string): boolean {
  return WELL_FORMED.test(text);
}

/** Takes the caller's `X-Request-Id` if it is well formed, else makes one; every answer carries it. */
export function assignRequestId(): MiddlewareHandler<{ Variables: RequestVariables }> {
  return async (c, next) => {
    const given = c.req.header("x-request-id");
    const requestId = given !== undefined && isRequestId(given) ? given : randomUUID();
    c.set("requestId", requestId);
    await next();
    c.res.headers.set("x-request-id", requestId);
  };
}
