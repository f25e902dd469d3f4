/** One line of the log. `cause` may be anything that was thrown; it is for the log only. */
export type LogEvent = (event: {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly requestId: string;
  readonly code?: string;
  readonly cause?: unknown;
}) => void;
