import type { WorkerFactory } from "./ports.ts";

export interface WatchedCreations {
  readonly workers: WorkerFactory;
  /** Resolves, with how many may have made a sandbox, once it is known of each what came of it, whoever waits for it. */
  settled(): Promise<number>;
}

/** Keeps account of a process's creations, for one that must leave no sandbox when it ends. */
export function watchCreations(workers: WorkerFactory): WatchedCreations {
  const underWay = new Set<Promise<unknown>>();
  let made = 0;
  return {
    workers: {
      attach: workers.attach,
      create(order, signal) {
        made += 1;
        const creation = workers.create(order, signal);
        const settled = creation
          .then(({ kind }) => {
            if (kind === "refused") made -= 1;
          })
          .catch(() => {})
          .finally(() => underWay.delete(settled));
        underWay.add(settled);
        return creation;
      },
    },
    async settled() {
      while (underWay.size > 0) await Promise.all(underWay);
      return made;
    },
  };
}
