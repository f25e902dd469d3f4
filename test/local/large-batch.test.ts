/** A batch of as many samples as one request may have, in the handler's own process. */
import { expect, it } from "vitest";
import { judgeBatches, measureBatches } from "../bench/batch/batch-figures.ts";

it("of 10,000 samples takes little more of the handler's memory than one of 1,000, and little of its time", async () => {
  const figures = await measureBatches([1_000, 10_000], { standIns: true });
  console.log(JSON.stringify(figures));
  expect(judgeBatches(figures).filter(({ isHeld }) => !isHeld)).toEqual([]);
}, 120_000);
