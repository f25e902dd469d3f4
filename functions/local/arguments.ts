/** Reads a command's arguments; ends the process with what is wrong with them and its usage. */
export function readOrExplain<T>(read: () => T, usage: string): T {
  try {
    return read();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}
