/** A module in one piece, as it is deployed: where each file is a module of its own, every call between two costs more. */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export async function importBundled<T>(path: string, from: string): Promise<T> {
  const entry = fileURLToPath(new URL(path, from));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    platform: "node",
    write: false,
  });
  const code = Buffer.from(outputFiles[0]?.contents ?? []).toString("base64");
  return import(/* @vite-ignore */ `data:text/javascript;base64,${code}`);
}
