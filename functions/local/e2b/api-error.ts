/** An error of E2B's REST API: the HTTP status, and the message of its `{code, message}` body. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

export const sandboxNotFound = (sandboxId: string) =>
  new ApiError(404, `Sandbox "${sandboxId}" doesn't exist or you don't have access to it`);

export const notImplemented = (what: string) =>
  new ApiError(501, `${what} is not implemented by the local E2B server`);
