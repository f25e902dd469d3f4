/**
 * Who calls: bearer keys, or signatures that the platform in front has checked.
 *
 * Several keys are valid at a time, so that they can be rotated. Only their hashes are kept, and all of them are
 * compared, each in constant time: how long a refusal takes says nothing about how close a guess was.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { z } from "zod";
import { Problem } from "./problem.ts";

export interface CallerVariables {
  /** Stands for the key or the identity that the request was sent with: what callers name is theirs alone. */
  readonly callerId: string;
}

/** SHA-256 of a key, as `createApp` wants it. */
export function hashApiKey(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** Refuses requests without one of the keys: 401 `unauthorized`, with a challenge (RFC 6750). */
export function requireApiKey(
  keyHashes: readonly Buffer[],
): MiddlewareHandler<{ Variables: CallerVariables }> {
  if (keyHashes.length === 0) throw new Error("at least one API key is needed");
  if (keyHashes.some((hash) => hash.length !== 32)) throw new Error("API keys are given as SHA-256 hashes");
  return async (c, next) => {
    const header = c.req.header("authorization");
    if (header === undefined)
      throw refuse("The request has no key. Send it as 'Authorization: Bearer <key>'.", "");
    const key = /^bearer +(\S+) *$/i.exec(header)?.[1];
    if (key === undefined || !isKnown(keyHashes, hashApiKey(key))) {
      throw refuse("The request's key is not one of the service's keys.", ', error="invalid_token"');
    }
    c.set("callerId", hashApiKey(key).toString("base64url"));
    await next();
  };
}

/**
 * Refuses requests whose caller the platform has not identified. A function's URL with AWS_IAM lets none of them through;
 * this is for the day on which somebody opens it.
 */
export function requireSignature(): MiddlewareHandler<{ Variables: CallerVariables }> {
  return async (c, next) => {
    const platform = signedEvent.safeParse(c.env);
    if (!platform.success) {
      throw new Problem(
        "unauthorized",
        "The request is not signed. Sign it for AWS (SigV4, service lambda).",
      );
    }
    const identity = platform.data.requestContext.authorizer.iam.userArn;
    const caller = identity.replace(sessionName, "");
    c.set("callerId", createHash("sha256").update(caller).digest("base64url"));
    await next();
  };
}

/** What a function's URL tells of a caller whose signature it has checked. */
const signedEvent = z.object({
  requestContext: z.object({ authorizer: z.object({ iam: z.object({ userArn: z.string().min(1) }) }) }),
});

/** A role's sessions are one caller: a retry after a new login must find its batch. */
const sessionName = /(?<=:assumed-role\/[^/]+)\/.*$/;

function isKnown(keyHashes: readonly Buffer[], hash: Buffer): boolean {
  let known = false;
  for (const keyHash of keyHashes) known = timingSafeEqual(keyHash, hash) || known;
  return known;
}

function refuse(detail: string, error: string): Problem {
  return new Problem("unauthorized", detail, {
    headers: { "www-authenticate": `Bearer realm="code-rewards"${error}` },
  });
}
