/**
 * Keeping a process alive for what it awaits.
 *
 * The clock's sleeps and idle connections keep no event loop running, so that what goes on in the background neither
 * holds up a command's end nor an invocation's. The price: work that only sleeps for a moment lets the loop run empty,
 * and then Node ends the process, or the platform takes an invocation for done that isn't. So whatever a process is
 * there for (an invocation, a command) holds the loop for as long as it is awaited, however it waits.
 */

/** No timer may be longer than some 24 days; this one does nothing when it fires. */
const tickMs = 60_000;

/** Runs `work`; the event loop doesn't run empty before its end. */
export async function holdEventLoop<Value>(work: () => Promise<Value>): Promise<Value> {
  const hold = setInterval(() => {}, tickMs);
  try {
    return await work();
  } finally {
    clearInterval(hold);
  }
}
