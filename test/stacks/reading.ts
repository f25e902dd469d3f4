/** Finding things in a graph. */
import type { Graph, Resource } from "./graph.ts";

export function resourcesOf(graph: Graph, type: string): readonly Resource[] {
  return graph.resources.filter((resource) => resource.type === type);
}

/** The one resource of that type and name; throws when there is none, or another. */
export function theResource(graph: Graph, type: string, name?: string): Resource {
  const found = resourcesOf(graph, type).filter((resource) => name === undefined || resource.name === name);
  const [first] = found;
  if (first === undefined || found.length > 1) {
    throw new Error(`${found.length} resources are a ${type} ${name ?? ""}`);
  }
  return first;
}

export interface Statement {
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: unknown;
}

/** What a role may do, from its inline policies and those put to it, as `[actions, resources]`. */
export function allowances(graph: Graph, roleName: string): [string[], string[]][] {
  const role = theResource(graph, "aws:iam/role:Role", roleName);
  const inline = (role.inputs.inlinePolicies ?? []) as { policy: string }[];
  const attached = resourcesOf(graph, "aws:iam/rolePolicy:RolePolicy").filter(
    ({ inputs }) => inputs.role === role.inputs.name || inputs.role === roleName,
  );
  return [...inline.map(({ policy }) => policy), ...attached.map(({ inputs }) => inputs.policy)]
    .flatMap((policy) => JSON.parse(policy).Statement as Statement[])
    .map(({ Action, Resource: on }) => [[Action].flat() as string[], [on].flat() as string[]]);
}

/** All policies there are, of any kind. */
export function allStatements(graph: Graph): Statement[] {
  const texts = JSON.stringify(graph.resources).match(/"\{\\"Version\\":\\"2012-10-17\\".*?\]\}"/g) ?? [];
  return texts.flatMap((text) => JSON.parse(JSON.parse(text)).Statement as Statement[]);
}

/** Which services may assume a role. */
export function trustedBy(graph: Graph, roleName: string): unknown {
  const policy = theResource(graph, "aws:iam/role:Role", roleName).inputs.assumeRolePolicy;
  const { Statement: statements } = typeof policy === "string" ? JSON.parse(policy) : policy;
  return statements.map((statement: { Principal: unknown }) => statement.Principal);
}

export function environmentOf(graph: Graph, functionName: string): Record<string, string> {
  const made = theResource(graph, "aws:lambda/function:Function", functionName);
  return made.inputs.environment.variables;
}
