/**
 * The part of a graph's making that runs inside the bundle, as SST's own program does: the platform's `run()`, under
 * Pulumi's mocks, in a process of its own because Pulumi keeps its state in globals.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Build, Graph, Resource } from "./graph.ts";
import { mockCall, mockState } from "./mocked-aws.ts";

interface MockedResource {
  readonly type: string;
  readonly name: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

interface MockedCall {
  readonly token: string;
  readonly inputs: Readonly<Record<string, unknown>>;
}

type Registration = Readonly<Record<string, (() => unknown) | undefined>>;

/** Pulumi as it is inside the bundle, and the config's program. */
export interface Program {
  readonly runtime: {
    setMocks(mocks: unknown, project: string, stack: string): Promise<void>;
    runInPulumiStack(program: () => Promise<void>): Promise<unknown>;
    disconnect(): Promise<void>;
  };
  readonly getMonitor: () => { registerResource(request: Registration, answer: unknown): unknown };
  readonly deserializeProperties: (object: unknown) => unknown;
  readonly run: () => Promise<Record<string, unknown>>;
}

export interface ProgramFacts {
  readonly app: Graph["app"];
  readonly workFolder: string;
  readonly graphPath: string;
}

const hangsAfterMs = 40_000;

/** Writes down every resource that the program would have made, and ends the process. */
export async function recordGraph(program: Program, facts: ProgramFacts): Promise<void> {
  const graph = { app: facts.app, resources: [], builds: [], outputs: {}, problems: [] } as MutableGraph;
  const note = (error: unknown) =>
    graph.problems.push(error instanceof Error ? error.message : String(error));
  // A failed output rejects somewhere inside Pulumi, and the program would wait for it for ever.
  const end = async () => {
    await listArchives(graph.resources);
    writeFileSync(facts.graphPath, JSON.stringify(graph));
    process.removeAllListeners("exit"); // Pulumi's own would fail over what is still waited for
    process.exit(0);
  };
  for (const event of ["unhandledRejection", "uncaughtException"] as const) {
    process.on(event, (error) => {
      note(error);
      setTimeout(() => void end(), 200);
    });
  }
  setTimeout(() => {
    note("the program waits for something that never comes");
    void end();
  }, hangsAfterMs);
  try {
    process.env.SST_SERVER = await serveCommand(graph.builds, facts.workFolder);
    await mockAws(program, facts.app, graph.resources);
    await program.runtime.runInPulumiStack(async () => {
      graph.outputs = await program.run();
    });
    await program.runtime.disconnect();
  } catch (error) {
    note(error);
  }
  await end();
}

/** What Pulumi would pack is a promise of file names, which JSON has no word for. */
async function listArchives(resources: readonly Resource[]): Promise<void> {
  for (const { inputs } of resources) {
    if (inputs?.source?.__pulumiArchive !== true) continue;
    const assets = await inputs.source.assets;
    const paths = Object.entries(assets ?? {}).map(async ([name, file]) => {
      return [name, await (file as { path: Promise<string> }).path];
    });
    inputs.source = Object.fromEntries(await Promise.all(paths));
  }
}

type MutableGraph = { -readonly [Key in keyof Graph]: Graph[Key] } & {
  resources: Resource[];
  builds: Build[];
  problems: string[];
};

/** The mocks are not told what a resource's options are; the request that reaches them has them. */
async function mockAws(program: Program, app: Graph["app"], resources: Resource[]): Promise<void> {
  const mocks = {
    newResource: ({ type, name, inputs }: MockedResource) => mockState(type, name, inputs),
    call: ({ token, inputs }: MockedCall) => mockCall(token, inputs),
  };
  await program.runtime.setMocks(mocks, app.name, app.stage);
  const monitor = program.getMonitor();
  const register = monitor.registerResource.bind(monitor);
  monitor.registerResource = (request, answer) => {
    resources.push({
      type: String(request.getType?.()),
      name: String(request.getName?.()),
      inputs: program.deserializeProperties(request.getObject?.()) as Resource["inputs"],
      retainOnDelete: request.getRetainondelete?.() === true,
    });
    return register(request, answer);
  };
}

/** SST's command is asked for two things: the asset bucket, and the bundles of functions. */
async function serveCommand(builds: Build[], workFolder: string): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, params } = JSON.parse(Buffer.concat(chunks).toString());
    response.end(JSON.stringify(answerCommand(method, params[0], builds, workFolder)));
  });
  server.listen(0, "127.0.0.1");
  server.unref();
  await new Promise((resolve) => server.once("listening", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answerCommand(method: string, asked: Build, builds: Build[], workFolder: string) {
  if (method === "Provider.Aws.Bootstrap") return { result: { asset: "sst-asset", state: "sst-state" } };
  if (method !== "Runtime.Build") return { error: `nobody here knows an answer to ${method}` };
  builds.push(asked);
  const out = join(workFolder, "bundles", asked.functionID);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "bundle.mjs"), "export const handler = () => {};\n");
  return { result: { handler: "bundle.handler", out, errors: [], sourcemaps: [] } };
}
