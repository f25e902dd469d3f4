/**
 * The secret between handlers and one worker's supervisor.
 *
 * Nobody has to keep it: it follows from E2B's key, which every handler has, the pool's id, and the sandbox's life. It
 * is in no row, log, command line or environment. With a new key the old workers can't be reached any more and are
 * replaced.
 */
import { createHmac } from "node:crypto";

const label = "code-rewards worker secrets 1";

export function deriveWorkerSecret(
  apiKey: string,
  poolId: string,
  { sandboxId, generation }: { readonly sandboxId: string; readonly generation: number },
): string {
  const poolSecret = createHmac("sha256", apiKey).update(`${label}:${poolId}`).digest();
  return createHmac("sha256", poolSecret).update(`${sandboxId}:${generation}`).digest("base64url");
}
