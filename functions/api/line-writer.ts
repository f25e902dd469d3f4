/**
 * Lines of a stream, gathered while the stream takes others: a caller who reads slowly costs their text and no more, and
 * gets them together.
 */
/** Writes one line; resolves when there is room for the next. */
export type WriteLine = (line: unknown) => Promise<unknown>;

/** `send` takes text and resolves when there is room for more. It must not reject. */
export function createLineWriter(send: (text: string) => Promise<unknown>): WriteLine {
  let waiting: string[] = [];
  let sending: Promise<void> | null = null;
  const sendAll = async () => {
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      await send(lines.join(""));
    }
    sending = null;
  };
  return (line) => {
    waiting.push(`${JSON.stringify(line)}\n`);
    sending ??= sendAll();
    return sending;
  };
}
