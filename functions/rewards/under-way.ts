/** What is under way, for whoever has to wait until nothing is. */
export interface UnderWay {
  /** To be called when something begins; what it returns, at its end. */
  begin(): () => void;
  /** Resolves when nothing is under way, also nothing that began meanwhile. */
  idle(): Promise<void>;
}

export function createUnderWay(): UnderWay {
  const ends = new Set<Promise<void>>();
  return {
    begin() {
      let finish = () => {};
      const end = new Promise<void>((resolve) => {
        finish = resolve;
      });
      ends.add(end);
      return () => {
        ends.delete(end);
        finish();
      };
    },
    async idle() {
      while (ends.size > 0) await Promise.all(ends);
    },
  };
}
