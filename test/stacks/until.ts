/** Looks until it is so. vitest's own poll belongs to one test at a time, and these run beside each other. */
export async function until(look: () => boolean | Promise<boolean>, limitMs: number): Promise<void> {
  const deadlineMs = Date.now() + limitMs;
  while (!(await look())) {
    if (Date.now() > deadlineMs) throw new Error(`not so after ${limitMs} ms: ${look}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
