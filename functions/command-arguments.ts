/** How each command reads its arguments: `--help` tells its usage, and so does whatever is wrong, with exit code 2. */
export function readArguments<T>(read: () => T, usage: string): T {
  if (process.argv.slice(2).some((argument) => argument === "--help" || argument === "-h")) {
    console.log(usage);
    process.exit(0);
  }
  try {
    return read();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

/** A whole number in a range, out of a text that a person typed. Throws an `Error` that names the option. */
export function readInteger(name: string, text: string, low: number, high: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw new Error(`${name} must be a whole number from ${low} to ${high}, not '${text}'`);
  }
  return value;
}
