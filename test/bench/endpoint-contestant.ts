import { type EndpointAddress, requestRewards } from "../../functions/local/rewards-client.ts";
import type { BenchTask, Contestant } from "./contestant.ts";

/** This project's endpoint: one request per batch, each task sent once. */
export function createEndpointContestant(endpoint: EndpointAddress): Contestant {
  return {
    name: "endpoint",
    async grade(samples) {
      const keys = new Map<BenchTask, string>();
      for (const { task } of samples) if (!keys.has(task)) keys.set(task, `task ${keys.size}`);
      const { rewards } = await requestRewards(endpoint, {
        tasks: Object.fromEntries([...keys].map(([task, key]) => [key, task])),
        samples: samples.map(({ task, completion }) => ({ task: keys.get(task), completion })),
      });
      return rewards;
    },
    async close() {},
  };
}
