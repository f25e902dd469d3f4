/** The Lambda that a schedule calls every minute. */
import { loadConfig } from "./config.ts";
import { createCleanupHandler } from "./lambda/cleanup-handler.ts";

export const handler = createCleanupHandler(() => loadConfig(process.env));
