/**
 * Secrets that SST has linked to a function: they come in a file beside the code, encrypted, and never through the
 * environment. SST's own reader decrypts it, once per container.
 */
import { Resource } from "sst/resource";
import { Fault } from "../rewards/faults.ts";

/** The variable that stands for each secret where there is no SST. */
const variables = { E2bApiKey: "E2B_API_KEY", RewardApiKeys: "CODE_REWARDS_API_KEYS" } as const;

/** What is linked, by the names of the variables that it replaces; nothing where SST has not deployed this process. */
export function readLinkedSecrets(
  environment: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  if (environment.SST_RESOURCE_App === undefined) return {};
  const found: Record<string, string> = {};
  try {
    const linked: Readonly<Record<string, unknown>> = { ...Resource };
    for (const [name, variable] of Object.entries(variables)) {
      const value = readValue(linked[name]);
      if (value !== undefined) found[variable] = value;
    }
  } catch (cause) {
    throw new Fault("misconfigured", "the linked secrets can't be read: deploy again", { cause });
  }
  return found;
}

function readValue(secret: unknown): string | undefined {
  if (typeof secret !== "object" || secret === null || !("value" in secret)) return undefined;
  return typeof secret.value === "string" ? secret.value : undefined;
}
