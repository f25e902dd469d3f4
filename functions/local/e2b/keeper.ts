import type { Socket } from "node:net";
import { type KeeperEvents, openKeeperChannel } from "./keeper-channel.ts";

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

/** Starts a keeper. Throws `Error`, saying what is needed, where the host lets nobody make a sandbox. */
export async function startKeeper(events: KeeperEvents): Promise<Keeper> {
  const channel = await openKeeperChannel(events);
  const tell = async (verb: string, sandbox: string) => {
    await channel.ask({ do: verb, sandbox });
  };
  return {
    cpus: channel.ready.cpus,
    async create(sandbox, { cpus, diskMib, accessToken, environment }) {
      const order = { cpus, disk_mib: diskMib, access_token: accessToken, environment };
      const { pid } = await channel.ask({ do: "create", sandbox, order });
      if (pid === undefined) throw new Error("the keeper answered a creation without a pid");
      return pid;
    },
    kill: (sandbox) => tell("kill", sandbox),
    freeze: (sandbox) => tell("freeze", sandbox),
    thaw: (sandbox) => tell("thaw", sandbox),
    async dial(sandbox, port) {
      const { socket } = await channel.ask({ do: "dial", sandbox, port });
      if (socket === undefined) throw new Error("the keeper answered a dial without a connection");
      return socket;
    },
    close: channel.close,
  };
}
