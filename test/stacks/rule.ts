import type { Graph } from "./graph.ts";
import type { SceneName } from "./scenes.ts";

export interface Rule {
  readonly name: string;
  readonly scene: SceneName;
  /** Throws when the graph breaks it. */
  readonly check: (graph: Graph) => void;
}

export function rule(scene: SceneName, name: string, check: Rule["check"]): Rule {
  return { scene, name, check };
}
