/** What it costs to load a module, in processes of its own. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Time on a CPU, which a busy machine makes longer by little; of all threads. */
const script = `
globalThis.awslambda = { streamifyResponse: (handler) => handler, HttpResponseStream: {} };
const before = process.cpuUsage();
await import(process.argv[1]);
const { user, system } = process.cpuUsage(before);
console.log((user + system) / 1000);
`;

/** Loads each module several times in turn; the least that each has taken, in milliseconds of CPU. */
export async function measureImports<Name extends string>(
  node: string,
  modules: Readonly<Record<Name, string>>,
  options: { readonly environment: Readonly<Record<string, string>>; readonly times: number },
): Promise<Record<Name, number>> {
  const names = Object.keys(modules) as Name[];
  const least = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY])) as Record<
    Name,
    number
  >;
  for (let time = 0; time < options.times; time += 1) {
    for (const name of names) {
      const args = ["--input-type=module", "--eval", script, modules[name]];
      const { stdout } = await promisify(execFile)(node, args, { env: { ...options.environment } });
      least[name] = Math.min(least[name], Number(stdout));
    }
  }
  return least;
}
