/** Whether items are the expected ones, each as often, in any order. Stops at the first that is one too many. */
export function areSameItems(expected: readonly string[], items: readonly string[]): boolean {
  if (items.length !== expected.length) return false;
  const left = new Map<string, number>();
  for (const item of expected) left.set(item, (left.get(item) ?? 0) + 1);
  for (const item of items) {
    const count = left.get(item) ?? 0;
    if (count === 0) return false;
    left.set(item, count - 1);
  }
  return true;
}
