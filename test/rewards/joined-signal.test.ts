import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { joinSignals } from "../../functions/rewards/joined-signal.ts";

const listeners = (signal: AbortSignal) => getEventListeners(signal, "abort").length;

it.each([0, 1])("is aborted with any of its sources (%i), also with one that was before", (which) => {
  const sources = [new AbortController(), new AbortController()];
  const { signal } = joinSignals(...sources.map((source) => source.signal));
  expect(signal.aborted).toBe(false);
  sources[which]?.abort();
  expect(signal.aborted).toBe(true);
  expect(joinSignals(...sources.map((source) => source.signal)).signal.aborted).toBe(true);
});

it("leaves nothing in a source that goes on, and hears no more of it", () => {
  const long = new AbortController();
  const joined = Array.from({ length: 5 }, () => joinSignals(long.signal, undefined));
  expect(listeners(long.signal)).toBe(5);
  for (const { leave } of joined) leave();
  expect(listeners(long.signal)).toBe(0);
  long.abort();
  expect(joined.map(({ signal }) => signal.aborted)).toEqual(Array(5).fill(false));
});
