/** The handler as a process of its own, over services that others started. Its parent starts it with IPC. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type LocalStackOptions, startLocalStack } from "../../../functions/local/stack.ts";
import type { HandlerCommand, HandlerReply, Holding } from "./measured-handler.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const lookEveryMs = 100;
const mib = (bytes: number) => bytes / 1_048_576;

/** Looks again and again at what the process holds; with `collects` only at what is left after its garbage is gone. */
function watch(collects: boolean): () => Holding {
  let most = { heapMib: 0, externalMib: 0, rssMib: 0 };
  let collecting = { user: 0, system: 0 };
  const look = () => {
    const before = process.cpuUsage();
    if (collects) collectGarbage();
    const took = process.cpuUsage(before);
    collecting = { user: collecting.user + took.user, system: collecting.system + took.system };
    const { heapUsed, external, rss } = process.memoryUsage();
    most = {
      heapMib: Math.max(most.heapMib, mib(heapUsed)),
      externalMib: Math.max(most.externalMib, mib(external)),
      rssMib: Math.max(most.rssMib, mib(rss)),
    };
  };
  collectGarbage();
  const cpuBefore = process.cpuUsage();
  look();
  const looks = setInterval(look, lookEveryMs);
  return () => {
    clearInterval(looks);
    look();
    const { user, system } = process.cpuUsage(cpuBefore);
    return { ...most, cpuMs: (user + system - collecting.user - collecting.system) / 1_000 };
  };
}

const reply = (message: HandlerReply) => process.send?.(message);
const stack = await startLocalStack(JSON.parse(process.argv[2] ?? "{}") as LocalStackOptions);
let endWatch = (): Holding => ({ heapMib: 0, externalMib: 0, rssMib: 0, cpuMs: 0 });

process.on("message", (command: HandlerCommand) => {
  if (command.kind === "watch") {
    endWatch = watch(command.collects);
    reply({ kind: "watching" });
  } else {
    reply({ kind: "held", holding: endWatch() });
  }
});
const stop = () => stack.close().then(() => process.exit(0));
process.once("SIGTERM", stop);
process.once("disconnect", stop);
reply({ kind: "ready", url: stack.url, apiKey: stack.apiKey });
