/** The Lambda behind the function's URL: the app, its answers streamed. */
import { streamHandle } from "hono/aws-lambda";
import { systemClock } from "./adapters/system-clock.ts";
import { loadConfig } from "./config.ts";
import { logLine, logPoolEvent } from "./log-lines.ts";
import { wireService } from "./wiring.ts";

const service = wireService(loadConfig(process.env), {
  clock: systemClock,
  log: logLine,
  reportPool: logPoolEvent,
});

export const handler = streamHandle(service.app);
