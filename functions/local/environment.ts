import { z } from "zod";
import type { E2bOptions } from "../adapters/e2b-options.ts";
import { Fault } from "../rewards/faults.ts";
import type { EndpointAddress } from "./rewards-client.ts";
import type { LocalStackOptions } from "./stack.ts";

/** An empty variable is one that is not set, as shells and compose files leave them behind. */
function unlessEmpty<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (value === "" ? undefined : value), schema.optional());
}

const text = unlessEmpty(z.string().trim().min(1));
/** A host and its port alone read as a URL, too: `localhost:3000` is the scheme `localhost`. */
const address = unlessEmpty(
  z.url({ protocol: /^https?$/, error: "must be an address that begins with http:// or https://" }),
);
const hostname = unlessEmpty(
  z.string().regex(/^[a-z0-9.-]+(:\d+)?$/i, "must be a host's name, such as e2b.app"),
);
const bearerKey = unlessEmpty(
  z.string().regex(/^\S+$/, "must have no blanks: it could not be sent as a bearer key"),
);
const variables = z.object({
  CODE_REWARDS_API_KEY: bearerKey,
  E2B_API_KEY: text,
  E2B_API_URL: address,
  E2B_SANDBOX_URL: address,
  E2B_DOMAIN: hostname,
  DYNAMODB_ENDPOINT: address,
});

const endpointVariables = variables
  .pick({ CODE_REWARDS_API_KEY: true })
  .extend({ CODE_REWARDS_URL: address });

type Environment = Readonly<Record<string, string | undefined>>;
type FromEnvironment = Pick<LocalStackOptions, "apiKey" | "e2b" | "dynamoDbEndpoint">;

/**
 * What the environment says of the local stack. With `useE2b` sandboxes are E2B's own, which needs `E2B_API_KEY`;
 * without it only an address (`E2B_API_URL`) replaces the embedded server. Throws `misconfigured` with every
 * problem at once.
 */
export function readEnvironment(environment: Environment, { useE2b = false } = {}): FromEnvironment {
  const {
    CODE_REWARDS_API_KEY: apiKey,
    DYNAMODB_ENDPOINT: dynamoDbEndpoint,
    ...e2bVariables
  } = read(variables, environment);
  const e2b = readE2b(e2bVariables, useE2b);
  return { ...(apiKey && { apiKey }), ...(e2b && { e2b }), ...(dynamoDbEndpoint && { dynamoDbEndpoint }) };
}

/** The endpoint that the environment names; null where it names none. Throws `misconfigured`. */
export function readEndpoint(environment: Environment): EndpointAddress | null {
  const { CODE_REWARDS_URL: url, CODE_REWARDS_API_KEY: apiKey } = read(endpointVariables, environment);
  if (!url) return null;
  if (!apiKey) throw new Fault("misconfigured", "CODE_REWARDS_URL is set: set CODE_REWARDS_API_KEY as well");
  return { url, apiKey };
}

function read<Schema extends z.ZodType>(schema: Schema, environment: Environment): z.infer<Schema> {
  const result = schema.safeParse(environment);
  if (result.success) return result.data;
  throw new Fault("misconfigured", `environment: ${z.prettifyError(result.error)}`);
}

function readE2b(
  given: Omit<z.infer<typeof variables>, "CODE_REWARDS_API_KEY" | "DYNAMODB_ENDPOINT">,
  useE2b: boolean,
): E2bOptions | null {
  const { E2B_API_KEY: apiKey, E2B_API_URL: apiUrl, E2B_SANDBOX_URL: sandboxUrl, E2B_DOMAIN: domain } = given;
  if (!useE2b && !apiUrl) return null;
  if (useE2b && !apiKey)
    throw new Fault("misconfigured", "environment: set E2B_API_KEY to use E2B's own sandboxes");
  return {
    apiKey: apiKey ?? "e2b_local",
    ...(apiUrl && { apiUrl }),
    ...(sandboxUrl && { sandboxUrl }),
    ...(domain && { domain }),
  };
}
