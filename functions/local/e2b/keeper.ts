import type { Socket } from "node:net";
import { unfitHost } from "./host-needs.ts";
import { type KeeperChannel, type KeeperEvents, openKeeperChannel } from "./keeper-channel.ts";

/** What a new sandbox is made of. */
export interface SandboxOrder {
  readonly cpus: readonly number[];
  readonly diskMib: number;
  readonly accessToken: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** What makes real sandboxes, seen from here. Every call throws `Error` with the reason. */
export interface Keeper {
  /** CPUs that sandboxes may use. */
  readonly cpus: readonly number[];
  /** Resolves, with the host's pid of the sandbox's first process, when the sandbox answers calls. */
  create(sandboxId: string, order: SandboxOrder): Promise<number>;
  /** Resolves when no process of the sandbox is left. */
  kill(sandboxId: string): Promise<void>;
  freeze(sandboxId: string): Promise<void>;
  thaw(sandboxId: string): Promise<void>;
  /** A connection to a port inside, or to the inner service for null. */
  dial(sandboxId: string, port: number | null): Promise<Socket>;
  /** Ends the keeper and with it every sandbox. */
  close(): Promise<void>;
}

/**
 * Starts a keeper. Throws `Error`, saying what is needed, where the host lets nobody make a sandbox. A lost one takes
 * its sandboxes along; the next creation starts another.
 */
export async function startKeeper(events: KeeperEvents): Promise<Keeper> {
  let isLost = false;
  const onLost = (detail: string) => {
    isLost = true;
    events.onLost(detail);
  };
  const open = () => {
    const channel = openKeeperChannel({ ...events, onLost });
    channel.catch(() => {
      isLost = true;
    });
    return channel;
  };
  let opening = open();
  const { cpus } = (await opening).ready;
  await tryHost(await opening);
  const ask = async (request: Record<string, unknown>) => (await opening).ask(request);
  const tell = async (verb: string, sandbox: string) => {
    await ask({ do: verb, sandbox });
  };
  return {
    cpus,
    async create(sandbox, { cpus: own, diskMib, accessToken, environment }) {
      if (isLost) {
        isLost = false;
        opening = open();
      }
      const order = toWire({ cpus: own, diskMib, accessToken, environment });
      const { pid } = await ask({ do: "create", sandbox, order });
      if (pid === undefined) throw new Error("the keeper answered a creation without a pid");
      return pid;
    },
    kill: (sandbox) => tell("kill", sandbox),
    freeze: (sandbox) => tell("freeze", sandbox),
    thaw: (sandbox) => tell("thaw", sandbox),
    async dial(sandbox, port) {
      const { socket } = await ask({ do: "dial", sandbox, port });
      if (socket === undefined) throw new Error("the keeper answered a dial without a connection");
      return socket;
    },
    close: () =>
      opening.then(
        (channel) => channel.close(),
        () => {},
      ),
  };
}

const toWire = ({ cpus, diskMib, accessToken, environment }: SandboxOrder) => ({
  cpus,
  disk_mib: diskMib,
  access_token: accessToken,
  environment,
});

/** Makes a sandbox and ends it, so that an unfit host is refused now and not when the first sandbox is needed. */
async function tryHost(channel: KeeperChannel): Promise<void> {
  const { cpus } = channel.ready;
  const order = toWire({ cpus, diskMib: 16, accessToken: "trial", environment: {} });
  try {
    await channel.ask({ do: "create", sandbox: "trial", order });
    await channel.ask({ do: "kill", sandbox: "trial" });
  } catch (error) {
    await channel.close();
    throw unfitHost((error as Error).message);
  }
}
