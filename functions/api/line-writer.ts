/**
 * Lines of a stream. Those that may wait a moment go out together: to send costs far more than to write. What the caller is slow to read waits as text and no more.
 */

import type { AnswerBytes } from "../rewards/batch.ts";

export interface LineWriter {
  /** Sends a line, with all that wait; resolves when there is room for the next. */
  write(line: unknown): Promise<unknown>;
  /** Sends a line within `gatheringMs`. */
  gather(line: unknown): void;
  /** All lines by now, and those for which there was no room yet. */
  bytes(): AnswerBytes;
}

/** How long a line may wait for others: real time of this connection, not of the batch. */
export const gatheringMs = 20;

/** `send` takes text and resolves when there is room for more. It must not reject. */
export function createLineWriter(send: (text: string) => Promise<unknown>): LineWriter {
  let waiting: string[] = [];
  let sending: Promise<void> | null = null;
  let timer: NodeJS.Timeout | null = null;
  let total = 0;
  let sent = 0;

  const sendWaiting = async () => {
    while (waiting.length > 0) {
      const lines = waiting;
      waiting = [];
      const upTo = total;
      await send(lines.join(""));
      sent = upTo;
    }
    sending = null;
  };
  const flush = () => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    sending ??= sendWaiting();
    return sending;
  };
  const add = (line: unknown) => {
    const text = `${JSON.stringify(line)}\n`;
    waiting.push(text);
    total += Buffer.byteLength(text);
  };

  return {
    write(line) {
      add(line);
      return flush();
    },
    gather(line) {
      add(line);
      if (sending === null) timer ??= setTimeout(flush, gatheringMs);
    },
    bytes: () => ({ total, unsent: total - sent }),
  };
}
