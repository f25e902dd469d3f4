/** Between batches and incidents: batches pass it before they begin, so that there can be a moment without one. */
export interface Gate {
  /** Resolves when a batch may begin; what it returns is to be called at its end. */
  enter(): Promise<() => void>;
  /** Lets no further batch begin; resolves once none is under way. */
  closeUntilIdle(): Promise<void>;
  untilBusy(): Promise<void>;
  open(): void;
  /** Runs what ends sandboxes. */
  strike<Value>(act: () => Promise<Value>): Promise<Value>;
  /** Grows with each beginning and each end of a strike: the same at two times says that nothing struck in between. */
  strikes(): number;
}

export function openGate(): Gate {
  let underWay = 0;
  let isOpen = true;
  let strikes = 0;
  let waiting: (() => void)[] = [];
  const changed = () => {
    const wakened = waiting;
    waiting = [];
    for (const wake of wakened) wake();
  };
  const until = async (isSo: () => boolean) => {
    while (!isSo()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return {
    async enter() {
      await until(() => isOpen);
      underWay += 1;
      changed();
      return () => {
        underWay -= 1;
        changed();
      };
    },
    closeUntilIdle() {
      isOpen = false;
      return until(() => underWay === 0);
    },
    untilBusy: () => until(() => underWay > 0),
    open() {
      isOpen = true;
      changed();
    },
    async strike(act) {
      strikes += 1;
      return act().finally(() => {
        strikes += 1;
      });
    },
    strikes: () => strikes,
  };
}
