/** What a trainer of the soak keeps to, whatever comes up by chance. */
import { Hono } from "hono";
import { expect, it } from "vitest";
import { serveOnLoopback } from "../local/loopback.ts";
import { type Gate, openGate } from "./gate.ts";
import { openLedger } from "./ledger.ts";
import { train } from "./trainer.ts";

/** A gate that knows how many are past it. */
function countingGate(): Gate & { underWay(): number } {
  const gate = openGate();
  let underWay = 0;
  return {
    ...gate,
    async enter() {
      const leave = await gate.enter();
      underWay += 1;
      return () => {
        underWay -= 1;
        leave();
      };
    },
    underWay: () => underWay,
  };
}

const finished = JSON.stringify({ status: 409, code: "run_finished", detail: "The run is finished." });
const lateBatches = 2;

it("sends no batch but through the gate, also one whose run is finished under it", async () => {
  const gate = countingGate();
  const ledger = openLedger(() => 0);
  const over = new AbortController();
  const sentOutside: string[] = [];
  const app = new Hono()
    .put("/v1/runs/:id", (c) => c.json({}))
    .post("/v1/runs/:id/heartbeat", (c) => c.json({}))
    .delete("/v1/batches/:key", (c) => c.json({}))
    .delete("/v1/runs/:id", (c) => {
      if ((ledger.counts.other["batch of a finished run"] ?? 0) >= lateBatches) over.abort();
      return c.json({ remaining_sandboxes: [] });
    })
    .post("/v1/rewards", (c) => {
      if (gate.underWay() === 0) sentOutside.push(c.req.header("idempotency-key") ?? "without a key");
      return c.body(finished, 409, { "content-type": "application/problem+json" });
    });
  const { url, close } = await serveOnLoopback(app);
  const setup = { endpoint: { url, apiKey: "k" }, ledger, over: over.signal, gate, nullsMayLast: true };
  await train({ ...setup, name: "trainer", seed: "gate", openRuns: new Set() });
  await close();
  expect(ledger.counts.other["batch of a finished run"]).toBeGreaterThanOrEqual(lateBatches);
  expect(sentOutside).toEqual([]);
}, 60_000);
