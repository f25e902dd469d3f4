/** The Lambda that a schedule calls every minute: one pass over the pool, told in one line. */
import { systemClock } from "./adapters/system-clock.ts";
import { loadConfig } from "./config.ts";
import { createLineLog } from "./log-lines.ts";
import { sweepPool } from "./pool/sweep/sweep.ts";
import { wireService } from "./wiring.ts";

/** Calls under way at the deadline are waited for; the longest takes about so long. */
const closingMs = 12_000;

const lines = createLineLog(console.log);
const { pool } = wireService(loadConfig(process.env), { clock: systemClock, ...lines });

export async function handler(
  _event: unknown,
  context: { getRemainingTimeInMillis(): number },
): Promise<void> {
  const leftMs = Math.max(0, context.getRemainingTimeInMillis() - closingMs);
  const report = await sweepPool(pool, { deadlineAtMs: pool.clock.nowMs() + leftMs });
  const level = report.faultCount > 0 ? "warn" : "info";
  lines.writeLine({ level, message: "swept the pool", ...report });
}
