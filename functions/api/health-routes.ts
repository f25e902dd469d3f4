/** Whether the service lives (touches nothing), and whether it could grade a batch now. */
import type { Context } from "hono";

export interface ReadinessReport {
  readonly isReady: boolean;
  /** What was looked at, and what was found; shown to callers with a key. */
  readonly checks: Readonly<Record<string, unknown>>;
}

/** Looks at what grading needs. What it can't reach is a check that failed, not an exception. */
export type ProbeReadiness = () => Promise<ReadinessReport>;

export function answerLiveness(c: Context): Response {
  return c.json({ status: "ok" });
}

export function handleReadiness(probe: ProbeReadiness) {
  return async (c: Context): Promise<Response> => {
    const { isReady, checks } = await probe();
    return c.json({ status: isReady ? "ok" : "unavailable", checks }, isReady ? 200 : 503);
  };
}
