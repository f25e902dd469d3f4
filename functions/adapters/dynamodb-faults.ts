/**
 * What an error of the DynamoDB client means to us.
 *
 * `misconfigured`: trying again is of no use until somebody changes the deployment. `store_unavailable`: everything
 * else that AWS or the network does; whether a write was applied is then unknown. An error that says that *we* wrote
 * nonsense (ValidationException) is a bug and stays what it is.
 */
import { Fault } from "../rewards/faults.ts";

const misconfigured: Readonly<Record<string, string>> = {
  ResourceNotFoundException: "the table does not exist",
  AccessDeniedException: "access to the table is denied",
  UnrecognizedClientException: "the AWS credentials are not valid",
  InvalidSignatureException: "the AWS credentials are not valid",
  IncompleteSignatureException: "the AWS credentials are not valid",
  MissingAuthenticationTokenException: "the AWS credentials are missing",
  InvalidClientTokenId: "the AWS credentials are not valid",
  CredentialsProviderError: "no AWS credentials were found",
};

const bugs: readonly string[] = ["ValidationException", "SerializationException", "TypeError"];

/** The fault that an error stands for, or the error itself when it is a bug of ours. */
export function faultOf(error: unknown, tableName: string): Error {
  if (error instanceof Fault) return error;
  if (!(error instanceof Error)) return new Fault("store_unavailable", "DynamoDB failed", { cause: error });
  if (bugs.includes(error.name)) return error;
  const why = misconfigured[error.name] ?? (isMissingRegion(error) ? "no AWS region is set" : undefined);
  if (why !== undefined) {
    return new Fault("misconfigured", `DynamoDB table "${tableName}": ${why}`, { cause: error });
  }
  return new Fault("store_unavailable", `DynamoDB did not answer: ${errorWord(error)}`, { cause: error });
}

/** Network errors are all named "Error"; their code tells them apart. */
function errorWord(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

function isMissingRegion(error: Error): boolean {
  return error.message === "Region is missing";
}
