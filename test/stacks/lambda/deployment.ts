/** Functions of one deployment: bundled, each in containers of its own, over one table and one E2B. */
import { type Bundle, bundleFunction } from "./bundle.ts";
import { type Container, type ContainerOptions, startContainer } from "./container.ts";
import { fetchLambdaRuntimes, type LambdaNode } from "./runtimes.ts";
import { startWorld, type World } from "./world.ts";

export interface Deployment {
  readonly world: World;
  /** Bundled once for each Node; tests may change it before its first container starts. */
  bundle(entry: string, node: LambdaNode): Promise<Bundle>;
  start(
    entry: string,
    node: LambdaNode,
    options?: Partial<Pick<ContainerOptions, "client" | "environment" | "timeoutMs">>,
  ): Promise<Container>;
  /** Ends all containers, then what is around them. */
  close(): Promise<void>;
}

export async function deploy(options: { readonly slots: number }): Promise<Deployment> {
  const runtimes = await fetchLambdaRuntimes();
  const world = await startWorld(options);
  const bundles = new Map<string, Promise<Bundle>>();
  const containers: Container[] = [];
  const bundle = (entry: string, node: LambdaNode) => {
    const known = bundles.get(`${entry} ${node}`) ?? bundleFunction(entry, node);
    bundles.set(`${entry} ${node}`, known);
    return known;
  };
  return {
    world,
    bundle,
    async start(entry, node, { environment, ...more } = {}) {
      const container = await startContainer({
        runtimes,
        node,
        bundle: await bundle(entry, node),
        environment: { ...world.environment, ...environment },
        ...more,
      });
      containers.push(container);
      return container;
    },
    async close() {
      await Promise.all(containers.map((container) => container.close()));
      await world.close();
      for (const made of bundles.values()) (await made).remove();
    },
  };
}
