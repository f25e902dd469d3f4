/** The local stack as a process of its own, which can be asked how much it holds. Its parent starts it with IPC. */
import { readdirSync, readlinkSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { readEnvironment } from "../../functions/local/environment.ts";
import { startLocalStack } from "../../functions/local/stack.ts";
import type { StackCommand, StackReply, Vitals } from "./stack-under-test.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function readVitals(): Vitals {
  collectGarbage();
  collectGarbage(); // what finalizers let go
  const { heapUsed, rss } = process.memoryUsage();
  const targets = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return ""; // the listing's own, gone by now
    }
  });
  const sockets = targets.filter((target) => target.startsWith("socket:")).length;
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  return { heapBytes: heapUsed, rssBytes: rss, sockets, descriptors: targets.length - sockets, timers };
}

function reply(message: StackReply): void {
  process.send?.(message);
}

const slots = Number(process.argv[2]);
const { e2b, ...environment } = readEnvironment(process.env);
if (e2b === undefined) throw new Error("E2B_API_URL must be set");
// Silence must cost a soak of minutes seconds, not the half of one that it may in a deployment.
const impatient = { ...e2b, requestTimeoutMs: 4_000, sandboxRequestTimeoutMs: 4_000 };
const stack = await startLocalStack({ port: 0, plan: "pro", slots, ...environment, e2b: impatient });

process.on("message", (command: StackCommand) => {
  if (command === "vitals") reply({ kind: "vitals", vitals: readVitals() });
});
const stop = () =>
  stack.close().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
process.once("SIGTERM", stop);
process.once("disconnect", stop);
reply({ kind: "ready", url: stack.url, apiKey: stack.apiKey });
