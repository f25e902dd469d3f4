/** The Lambda behind the function's URL: the app, its answers streamed. */
import type { Hono } from "hono";
import { streamHandle } from "hono/aws-lambda";
import { systemClock } from "./adapters/system-clock.ts";
import { createMisconfiguredApp } from "./api/misconfigured-app.ts";
import { loadConfig } from "./config.ts";
import { createLineLog } from "./log-lines.ts";
import { Fault } from "./rewards/faults.ts";
import { wireService } from "./wiring.ts";

export const handler = streamHandle(wireOrExplain());

// biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; who serves it uses none of them
function wireOrExplain(): Hono<any> {
  const deps = { clock: systemClock, ...createLineLog(console.log) };
  try {
    return wireService(loadConfig(process.env), deps).app;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    deps.reportPool({ kind: "fault", fault: error });
    return createMisconfiguredApp(error);
  }
}
