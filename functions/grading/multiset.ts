/** Whether other items are these ones, each as often, in any order. Gives up at the first that is too many. */
export function createMultisetMatcher(expected: readonly string[]): (items: readonly string[]) => boolean {
  const wanted = countItems(expected);
  return (items) => {
    if (items.length !== expected.length) return false;
    const seen = new Map<string, number>();
    for (const item of items) {
      const count = (seen.get(item) ?? 0) + 1;
      if (count > (wanted.get(item) ?? 0)) return false;
      seen.set(item, count);
    }
    return true;
  };
}

function countItems(items: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}
