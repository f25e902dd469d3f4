/** How many requests of each kind were served, for tests and measurements. */
export interface RequestCounts {
  add(kind: string): void;
  /** Counts by kind, such as `POST /v2/sandboxes`, `envd /process.Process/Start` or `port 8000`. */
  snapshot(): Readonly<Record<string, number>>;
}

export function createRequestCounts(): RequestCounts {
  const counts = new Map<string, number>();
  return {
    add: (kind) => counts.set(kind, (counts.get(kind) ?? 0) + 1),
    snapshot: () => Object.fromEntries(counts),
  };
}
