/** A container's ways to what is around it, which forget its flows when it is frozen, as a NAT does: without a word. */
import { openWay, type Way } from "../../faults/way.ts";
import type { World } from "./world.ts";

export interface Ways {
  /** For a container that is to go by them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Forgets every flow that there is. */
  forget(): void;
  close(): void;
}

export async function openWays({ environment }: World): Promise<Ways> {
  const names = ["E2B_API_URL", "E2B_SANDBOX_URL", "DYNAMODB_ENDPOINT"] as const;
  const ways: Record<string, Way> = {};
  for (const name of names) ways[name] = await openWay(environment[name] ?? "");
  const each = Object.entries(ways);
  return {
    environment: Object.fromEntries(each.map(([name, { url }]) => [name, url])),
    forget() {
      for (const [, way] of each) way.forget();
    },
    close() {
      for (const [, way] of each) way.close();
    },
  };
}
