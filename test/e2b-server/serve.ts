import { startE2bServer } from "../../functions/local/e2b/server.ts";

// A server in a process of its own, for tests that need another user, or that kill it. One JSON line tells where it is.
const server = await startE2bServer({
  apiKey: process.argv[2] ?? "",
  plan: { concurrentSandboxes: 40, createsPerSecond: 40 },
  log: (line) => console.error(line),
});
console.log(JSON.stringify({ apiUrl: server.apiUrl, sandboxUrl: server.sandboxUrl }));
process.stdin.resume().on("end", async () => {
  await server.close();
  process.exit(0);
});
