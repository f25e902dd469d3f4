/** The cron's work on this machine: every minute, and when somebody asks. */
import { randomUUID } from "node:crypto";
import { Hono } from "hono";
import { hashApiKey, requireApiKey } from "../api/authentication.ts";
import { respondWithProblem, toProblem } from "../api/problem.ts";
import type { SweepReport } from "../pool/sweep/report.ts";
import { sweepPool } from "../pool/sweep/sweep.ts";
import type { Service } from "../wiring.ts";

const intervalMs = 60_000;
const passMs = 50_000;

/** One pass, logged as one line when it did or met anything. */
async function sweepOnce({ pool, stopping: signal }: Service): Promise<SweepReport> {
  const report = await sweepPool(pool, { deadlineAtMs: pool.clock.nowMs() + passMs, signal });
  const didSomething = Object.values(report.did).some((count) => count > 0);
  if (didSomething || report.faultCount > 0)
    console.error(JSON.stringify({ message: "swept the pool", ...report }));
  return report;
}

/** Starts the timer; what it returns ends it, after the pass that may be under way. */
export function sweepEveryMinute(service: Service): () => Promise<void> {
  const over = new AbortController();
  const loop = async () => {
    while (!over.signal.aborted) {
      await service.pool.clock.sleep(intervalMs, over.signal);
      if (!over.signal.aborted) await sweepOnce(service);
    }
  };
  const running = loop();
  return () => {
    over.abort();
    return running;
  };
}

/** The app with `POST /local/sweep`, which runs one pass and answers what it did. */
// biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; who serves it uses none of them
export function addSweepRoute(service: Service, apiKey: string): Hono<any> {
  const app = new Hono();
  app.post("/local/sweep", requireApiKey([hashApiKey(apiKey)]), async (c) =>
    c.json(await sweepOnce(service)),
  );
  app.onError((error) => respondWithProblem(toProblem(error), randomUUID()));
  app.mount("/", service.app.fetch);
  return app;
}
