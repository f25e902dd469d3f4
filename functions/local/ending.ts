/**
 * How a command is told to end: by SIGINT, SIGTERM or SIGHUP, and as often as they come.
 *
 * A Ctrl-C reaches a command twice, from the terminal and from npm; `timeout` and systemd tell a whole group. So only
 * the first signal says anything, and no other one interrupts the end that it began.
 */
import { constants } from "node:os";

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Every part of an end is over before. A command that takes no more signals must not hang all the same. */
const endsWithinMs = 150_000;

export interface Ending {
  /** Aborted by the first signal. */
  readonly signal: AbortSignal;
  /** Resolves once the command was told to end. */
  readonly asked: Promise<void>;
  /** What shells expect of a command that a signal ended: 128 and its number; 0 before there was one. */
  exitCode(): number;
}

/** To be called before anything is started that must not be left behind. */
export function listenForEnd(): Ending {
  const controller = new AbortController();
  let exitCode = 0;
  const asked = new Promise<void>((resolve) => {
    for (const name of signals) {
      process.on(name, () => {
        if (controller.signal.aborted) return;
        exitCode = 128 + constants.signals[name];
        console.error(JSON.stringify({ message: `${name}: ending what runs; a few seconds` }));
        setTimeout(giveUp, endsWithinMs).unref();
        controller.abort(new Error(`ended by ${name}`));
        resolve();
      });
    }
  });
  return { signal: controller.signal, asked, exitCode: () => exitCode };
}

function giveUp(): never {
  console.error(
    `The end was not over after ${endsWithinMs / 1_000} s. What is left ends by its time to live.`,
  );
  process.exit(1);
}
