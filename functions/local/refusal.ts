import { platform } from "node:os";
import { Fault } from "../rewards/faults.ts";
import { RefusalError } from "./rewards-client.ts";

/** Ends the process with a message when it isn't Linux: programs are never run with less isolation. */
export function requireLinux(): void {
  if (platform() === "linux") return;
  console.error(
    `code-rewards runs programs in Linux namespaces, which ${platform()} has not. Run it in a Linux virtual machine ` +
      "or container (WSL 2, Lima, Docker with user namespaces), or use a deployed endpoint.",
  );
  process.exit(1);
}

/**
 * Ends the process over an error, in words for its reader: what its start misses and what to do, what its end left
 * behind, or what the endpoint said.
 */
export function endWithError(error: unknown): never {
  const code = (error as NodeJS.ErrnoException)?.code;
  if (error instanceof Fault) console.error(`${error.code}: ${error.message}`);
  else if (error instanceof RefusalError) console.error(error.message);
  else if (code === "EADDRINUSE")
    console.error("The port is in use. Choose another with --port, or 0 for a free one.");
  else console.error(error);
  process.exit(1);
}
