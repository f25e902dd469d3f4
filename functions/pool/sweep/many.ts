/** Does the same to many, a few at a time. */

/** Calls of the provider and of the table at once: neither is flooded, and a hundred workers take seconds. */
const atOnce = 8;

/** Starts none of what is left once `isOver` says so; how many those were. `act` must not throw. */
export async function forEachFew<T>(
  items: readonly T[],
  isOver: () => boolean,
  act: (item: T) => Promise<void>,
): Promise<number> {
  const left = [...items];
  async function work(): Promise<void> {
    while (left.length > 0 && !isOver()) {
      const item = left.shift();
      if (item !== undefined) await act(item);
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return left.length;
}
