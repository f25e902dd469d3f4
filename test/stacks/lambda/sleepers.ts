/** A function that waits for a timer which keeps no event loop alive, and says so when it has waited. */
export const handler = (): Promise<string> =>
  new Promise((resolve) => {
    setTimeout(() => resolve("slept"), 300).unref();
  });
