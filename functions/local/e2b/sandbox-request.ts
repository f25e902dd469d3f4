import { ApiError, notImplemented } from "./api-error.ts";
import { isObject } from "./http-body.ts";

/** What a creation asks for, checked. Times are in ms here and in whole seconds on the wire. */
export interface SandboxRequest {
  readonly templateId: string;
  readonly timeoutMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  readonly onTimeout: "kill" | "pause";
  readonly allowInternetAccess: boolean;
  readonly network: Readonly<Record<string, unknown>>;
}

const DEFAULT_TIMEOUT_S = 300;
const KNOWN_FIELDS = new Set(
  "templateID timeout metadata envVars secure autoPause autoPauseMemory autoResume allow_internet_access network".split(
    " ",
  ),
);
const KNOWN_NETWORK_FIELDS = new Set(["allowOut", "denyOut", "allowPublicTraffic"]);

/**
 * Reads the body of a creation. Throws `ApiError`: 400 for what is malformed, 501 for what E2B knows and this server
 * doesn't. Rules on outgoing traffic are accepted and moot: no local sandbox has a way out.
 */
export function parseSandboxRequest(body: Record<string, unknown>): SandboxRequest {
  const unknown = Object.keys(body).find((field) => !KNOWN_FIELDS.has(field));
  if (unknown !== undefined) throw notImplemented(`The field "${unknown}"`);
  if (typeof body.templateID !== "string") throw invalid("templateID");
  if (body.autoPauseMemory === false) throw notImplemented("A pause that keeps files only");
  if (isObject(body.autoResume) && body.autoResume.enabled === true) throw notImplemented("autoResume");
  const network = optional(body, "network", isObject) ?? {};
  const unknownRule = Object.keys(network).find((field) => !KNOWN_NETWORK_FIELDS.has(field));
  if (unknownRule !== undefined) throw notImplemented(`The field "network.${unknownRule}"`);
  return {
    templateId: body.templateID,
    timeoutMs: parseTimeoutMs(body.timeout, DEFAULT_TIMEOUT_S),
    metadata: optional(body, "metadata", isTextMap) ?? {},
    environment: optional(body, "envVars", isTextMap) ?? {},
    onTimeout: optional(body, "autoPause", isBoolean) === true ? "pause" : "kill",
    allowInternetAccess: optional(body, "allow_internet_access", isBoolean) ?? true,
    network,
  };
}

/** Reads a timeout in seconds. A negative one counts as 0. */
export function parseTimeoutMs(value: unknown, defaultS: number): number {
  if (value === undefined || value === null) return defaultS * 1000;
  if (typeof value !== "number" || !Number.isInteger(value)) throw invalid("timeout");
  return Math.max(0, value) * 1000;
}

function optional<T>(
  body: Record<string, unknown>,
  field: string,
  isRight: (value: unknown) => value is T,
): T | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (!isRight(value)) throw invalid(field);
  return value;
}

const invalid = (field: string) =>
  new ApiError(400, `Error when parsing request: "${field}" is missing or invalid`);

const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";

function isTextMap(value: unknown): value is Record<string, string> {
  return isObject(value) && Object.values(value).every((text) => typeof text === "string");
}
