/**
 * What an error of the DynamoDB client means to us.
 *
 * `misconfigured`: trying again is of no use until somebody changes the deployment. `store_unavailable`: everything
 * else that AWS or the network does; whether a write was applied is then unknown. An error that says that *we* wrote
 * nonsense (ValidationException) is a bug and stays what it is.
 */
import { Fault } from "../rewards/faults.ts";
import { readRetryAfterMs } from "./retry-after.ts";

const badCredentials = "the AWS credentials are not valid. Set valid ones";
const noCredentials = "no AWS credentials were found. Set them, or give the function a role";

const misconfigured: Readonly<Record<string, string>> = {
  ResourceNotFoundException:
    "the table does not exist. Create it, or set CODE_REWARDS_TABLE (and the region) right",
  AccessDeniedException: "access to the table is denied. Allow GetItem, Query and UpdateItem on it",
  UnrecognizedClientException: badCredentials,
  InvalidSignatureException: badCredentials,
  IncompleteSignatureException: badCredentials,
  MissingAuthenticationTokenException: noCredentials,
  MissingAuthenticationToken: noCredentials,
  InvalidClientTokenId: badCredentials,
  CredentialsProviderError: noCredentials,
};

const bugs: readonly string[] = ["ValidationException", "SerializationException", "TypeError"];

/** The fault that an error stands for, or the error itself when it is a bug of ours. */
export function faultOf(error: unknown, tableName: string): Error {
  if (error instanceof Fault) return error;
  if (!(error instanceof Error)) return new Fault("store_unavailable", "DynamoDB failed", { cause: error });
  const why = misconfigured[error.name] ?? explainMessage(error);
  if (why !== undefined) {
    return new Fault("misconfigured", `DynamoDB table "${tableName}": ${why}`, { cause: error });
  }
  if (bugs.includes(error.name)) return error;
  const isSilence = "code" in error || error.name === "TimeoutError";
  const detail = `DynamoDB ${isSilence ? "did not answer" : "refused the request"}: ${errorWord(error)}`;
  return new Fault("store_unavailable", detail, { retryAfterMs: retryAfterOf(error), cause: error });
}

/** Network errors are all named "Error"; their code tells them apart. */
function errorWord(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

/** Faults of the configuration that only their texts tell from others. */
function explainMessage({ name, message }: Error): string | undefined {
  if (message === "Region is missing") return "no AWS region is set. Set AWS_REGION";
  const isOfKeys = name === "ValidationException" && /\bkey element\b|\bkey schema\b/i.test(message);
  return isOfKeys ? "it has other keys than pk and sk, both strings. Name the right table" : undefined;
}

/** The client has waited for as long as it was told to; what is left is for us. */
function retryAfterOf(error: Error): number | null {
  const { $response: answer } = error as { $response?: { headers?: Readonly<Record<string, string>> } };
  return readRetryAfterMs(answer?.headers?.["retry-after"], Date.now());
}
