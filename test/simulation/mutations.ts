/** Changes of the product's source text, and the product loaded with one of them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";

/** In a file, `from` (found exactly once) becomes `to`. */
export interface Mutation {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

export interface ClauseMutation extends Mutation {
  /** Of the expression whose clause is made to hold always. */
  readonly verb: string;
  /** The clause's place in it. */
  readonly index: number;
}

type Checks = typeof import("./checks.ts");

const root = new URL("../../", import.meta.url);
const pool = "functions/pool/";

/** Loads the checks over the product's source, with one change or none. */
export async function loadChecks(mutation: Mutation | null): Promise<Checks> {
  const bundle = await build({
    entryPoints: [fileURLToPath(new URL("checks.ts", import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    logLevel: "silent",
    plugins: mutation === null ? [] : [changing(mutation)],
  });
  const folder = mkdtempSync(join(tmpdir(), "mutant-"));
  try {
    const file = join(folder, "checks.mjs");
    writeFileSync(file, bundle.outputFiles[0]?.contents ?? new Uint8Array());
    return await import(/* @vite-ignore */ pathToFileURL(file).href);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function changing(mutation: Mutation): Plugin {
  const path = fileURLToPath(new URL(mutation.file, root));
  return {
    name: "mutation",
    setup(bundling) {
      bundling.onLoad({ filter: /\.ts$/ }, (args) =>
        args.path === path ? { contents: applied(mutation), loader: "ts" } : undefined,
      );
    },
  };
}

/** The mutated text; throws when the place isn't there, or not the only one. */
export function applied({ file, from, to }: Mutation): string {
  const source = readFileSync(new URL(file, root), "utf8");
  if (source.split(from).length !== 2) throw new Error(`${file}: «${from}» is not there exactly once`);
  return source.replace(from, () => to);
}

/** Each clause of each condition in the pool's source, made one that always holds. */
export function clauseMutations(): ClauseMutation[] {
  return poolFiles().flatMap((file) => {
    const source = readFileSync(new URL(file, root), "utf8");
    const written = [...source.matchAll(/name: "([^"]+)",[\s\S]*?clauses: (\[[^\]]*\]|words\.map\(.*\)),/g)];
    return written.flatMap(([from, verb = "", list = ""]) =>
      itemsOf(list).map(({ item, kept }, index): ClauseMutation => {
        const always = `\`(\${${item}} OR NOT \${${item}})\``;
        return { file, verb, index, from, to: from.replace(list, () => kept(always)) };
      }),
    );
  });
}

function itemsOf(list: string): { item: string; kept: (changed: string) => string }[] {
  const mapped = /^words\.map\(\(word\) => (.*)\)$/.exec(list)?.[1];
  if (mapped !== undefined) return [{ item: mapped, kept: (changed) => `words.map((word) => ${changed})` }];
  const items = list
    .slice(1, -1)
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
  return items.map((item, at) => ({
    item,
    kept: (changed) => `[${items.map((other, index) => (index === at ? changed : other)).join(", ")}]`,
  }));
}

function poolFiles(): string[] {
  const entries = readdirSync(new URL(pool, root), { recursive: true, encoding: "utf8" });
  return entries.filter((name) => name.endsWith(".ts")).map((name) => `${pool}${name}`);
}
