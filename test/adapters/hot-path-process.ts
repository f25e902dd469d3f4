/** What a handler does on its way without a creation, and then a creation. Run where the package e2b can't be loaded. */
import { createRequire, register } from "node:module";

register("./unloadable-sdk.mjs", import.meta.url);
const { factoryFor, doublingChunk, collect, outputsOf, newOrder, never } = await import("./cloud.ts");
const { e2b, worker } = JSON.parse(process.argv[2] ?? "");
const workers = factoryFor(e2b);
const events = await collect(workers.attach(worker).execute(doublingChunk("hot"), 9, never));
const created = await workers.create(newOrder(), never);
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((path) =>
  path.includes("/e2b/dist/"),
);
console.log(
  JSON.stringify({
    outputs: outputsOf(events),
    created,
    loaded,
    said: created.kind === "refused" ? created.fault.message : "",
  }),
);
