/** The part of dynalite 4 that is used here; the package has no types of its own. */
declare module "dynalite" {
  import type { Server } from "node:http";

  interface DynaliteOptions {
    /** How long a new table stays CREATING, in milliseconds. */
    readonly createTableMs?: number;
    /** Folder of the store; in memory without one. */
    readonly path?: string;
  }

  export default function dynalite(options?: DynaliteOptions): Server;
}
