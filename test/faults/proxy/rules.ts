/** Which request suffers which fault. */
import type { Fault, SeenRequest, ServicePath } from "./fault.ts";

/** Every condition that is given must hold. */
export interface Match {
  readonly method?: string;
  /** The whole path without its query, or a pattern for path and query. */
  readonly url?: string | RegExp;
  /** DynamoDB's operation, or several. */
  readonly operation?: string | readonly string[];
  readonly body?: RegExp;
  readonly where?: (request: SeenRequest) => boolean;
  /** Which of the requests that fit all of the above, counted from 1 since the rule was added. */
  readonly nth?: number | readonly number[] | { readonly from: number; readonly to?: number };
  /** Out of these, how many: drawn by the proxy's seed, the rule's name and the count. */
  readonly probability?: number;
  /** Milliseconds since the rule was added: from the first, up to the second. */
  readonly windowMs?: readonly [number, number];
  /** The rule is over for good as soon as this is true. */
  readonly until?: () => boolean;
}

export interface Rule {
  /** For records; default: the path and the kind of fault. Rules of one name share their luck. */
  readonly name?: string;
  readonly path: ServicePath | readonly ServicePath[];
  readonly match?: Match;
  /** The fault, or who decides at the `nth` request that fits; null lets it pass, untouched by later rules. */
  readonly fault: Fault | ((request: SeenRequest, nth: number) => Fault | null | Promise<Fault | null>);
}

export interface ActiveRule {
  readonly name: string;
  /** Whether this request is the rule's, which counts it. */
  claims(request: SeenRequest): number | null;
  readonly fault: Rule["fault"];
}

/** Starts a rule's count and window. `nowMs` is the proxy's clock. */
export function activateRule(rule: Rule, seed: number, nowMs: () => number): ActiveRule {
  const { match = {} } = rule;
  const name = rule.name ?? nameRule(rule);
  const addedAtMs = nowMs();
  let count = 0;
  let over = false;
  return {
    name,
    fault: rule.fault,
    claims(request) {
      over ||= match.until?.() ?? false;
      if (over || !fits(rule, request)) return null;
      count += 1;
      const ageMs = nowMs() - addedAtMs;
      if (match.windowMs && (ageMs < match.windowMs[0] || ageMs >= match.windowMs[1])) return null;
      if (match.nth !== undefined && !isNth(match.nth, count)) return null;
      if (match.probability !== undefined && draw(`${seed} ${name} ${count}`) >= match.probability)
        return null;
      return count;
    },
  };
}

function nameRule({ path, fault }: Rule): string {
  return `${[path].flat().join("+")} ${typeof fault === "function" ? "by choice" : fault.kind}`;
}

function fits({ path, match = {} }: Rule, request: SeenRequest): boolean {
  if (![path].flat().includes(request.path)) return false;
  if (match.method !== undefined && match.method !== request.method) return false;
  if (match.url !== undefined && !isUrl(match.url, request.url)) return false;
  if (match.operation !== undefined && ![match.operation].flat().includes(request.operation ?? ""))
    return false;
  if (match.body !== undefined && !match.body.test(request.body)) return false;
  return match.where?.(request) ?? true;
}

function isUrl(wanted: string | RegExp, url: string): boolean {
  return typeof wanted === "string" ? url.split("?")[0] === wanted : wanted.test(url);
}

function isNth(nth: NonNullable<Match["nth"]>, count: number): boolean {
  if (typeof nth === "number") return count === nth;
  if ("from" in nth) return count >= nth.from && count <= (nth.to ?? Number.POSITIVE_INFINITY);
  return nth.includes(count);
}

/** A number in [0, 1) that depends on the text alone (FNV-1a, mixed): the same seed gives each count the same luck. */
export function draw(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000;
}
