import { z } from "zod";
import type { E2bOptions } from "../adapters/e2b-options.ts";
import { Fault } from "../rewards/faults.ts";
import type { LocalStackOptions } from "./stack.ts";

/** An empty variable is one that is not set, as shells and compose files leave them behind. */
function unlessEmpty<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => (value === "" ? undefined : value), schema.optional());
}

const text = unlessEmpty(z.string().trim().min(1));
const address = unlessEmpty(z.url());
const bearerKey = unlessEmpty(
  z.string().regex(/^\S+$/, "must have no blanks: it could not be sent as a bearer key"),
);
const variables = z.object({
  CODE_REWARDS_API_KEY: bearerKey,
  E2B_API_KEY: text,
  E2B_API_URL: address,
  E2B_SANDBOX_URL: address,
  E2B_DOMAIN: text,
  DYNAMODB_ENDPOINT: address,
});

type FromEnvironment = Pick<LocalStackOptions, "apiKey" | "e2b" | "dynamoDbEndpoint">;

/**
 * What the environment says of the local stack. With `useE2b` sandboxes are E2B's own, which needs `E2B_API_KEY`;
 * without it only an address (`E2B_API_URL`) replaces the embedded server. Throws `misconfigured` with every
 * problem at once.
 */
export function readEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  { useE2b = false } = {},
): FromEnvironment {
  const read = variables.safeParse(environment);
  if (!read.success) throw new Fault("misconfigured", `environment: ${z.prettifyError(read.error)}`);
  const { CODE_REWARDS_API_KEY: apiKey, DYNAMODB_ENDPOINT: dynamoDbEndpoint, ...e2bVariables } = read.data;
  const e2b = readE2b(e2bVariables, useE2b);
  return { ...(apiKey && { apiKey }), ...(e2b && { e2b }), ...(dynamoDbEndpoint && { dynamoDbEndpoint }) };
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
