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
