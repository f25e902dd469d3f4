/** The end of a batch: its cost is noted while its workers go back, and the answer waits for both. */
import { expect, it } from "vitest";
import { startGrading } from "./batches.ts";
import { batchOf } from "./echo-batches.ts";
import { settle } from "./virtual-clock.ts";

function createGate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

it.each(["the note", "the workers"])("%s may come last; until then there is no answer", async (last) => {
  const [note, release] = [createGate(), createGate()];
  let noting = 0;
  let releasing = 0;
  let isAnswered = false;
  const { answer } = startGrading(batchOf(["right 1", "right 2"]), {
    whileWorkersLeave: () => {
      noting += 1;
      return note.opened;
    },
    beforeRelease: () => {
      releasing += 1;
      return release.opened;
    },
  });
  void answer.then(() => {
    isAnswered = true;
  });
  await settle();
  expect({ noting, releasing, isAnswered }).toEqual({ noting: 1, releasing: 1, isAnswered: false });
  (last === "the note" ? release : note).open();
  await settle();
  expect(isAnswered).toBe(false);
  (last === "the note" ? note : release).open();
  expect((await answer).rewards).toEqual([1, 1]);
});

it("a note that fails doesn't leave a worker behind", async () => {
  const release = createGate();
  const { answer, workers } = startGrading(batchOf(["right 1"]), {
    whileWorkersLeave: () => Promise.reject(new Error("the run was finished")),
    beforeRelease: () => release.opened,
  });
  let isOver = false;
  answer.catch(() => {
    isOver = true;
  });
  await settle();
  expect(isOver).toBe(false);
  release.open();
  await expect(answer).rejects.toThrow("the run was finished");
  expect(workers.leases[0]?.released).toEqual(["healthy"]);
});
