import { Sandbox, type SandboxOpts } from "e2b";

const starts = 20;

/**
 * CPU seconds of an interpreter that starts in a sandbox and does nothing. The recipe pays it for each program and each
 * case, and it differs between machines (and with what is installed) more than all the rest.
 */
export async function measureInterpreterStart(e2b: SandboxOpts): Promise<number> {
  const sandbox = await Sandbox.create({ ...e2b, timeoutMs: 60_000 });
  try {
    const loop = `for i in {1..${starts}}; do python3 -I -B -c pass; done; times`;
    const { stdout } = await sandbox.commands.run(`python3 -I -B -c pass; bash -c '${loop}'`);
    return readTimesOfChildren(stdout) / starts;
  } finally {
    await sandbox.kill();
  }
}

/** From the second line of bash's `times`, such as `0m1.234s 0m0.056s`: user and system. */
function readTimesOfChildren(times: string): number {
  const pair = [...(times.split("\n")[1] ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
  if (pair.length !== 2) throw new Error(`not what bash says of times: ${times}`);
  return pair.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}
