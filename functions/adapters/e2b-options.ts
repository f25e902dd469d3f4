/** Which E2B to use, and how. Entry points fill this in from the environment; nothing else here reads it. */
export interface E2bOptions {
  /** `E2B_API_KEY`. */
  readonly apiKey: string;
  /** `E2B_DOMAIN`: people run compatible clouds of their own. Default: `e2b.app`. */
  readonly domain?: string;
  /** `E2B_API_URL`: the control plane, when it isn't `https://api.<domain>`. */
  readonly apiUrl?: string;
  /** `E2B_SANDBOX_URL`: one address for what goes into sandboxes, which then routes by headers. */
  readonly sandboxUrl?: string;
  /** Template of the sandboxes. Default: `base`, E2B's own. */
  readonly template?: string;
  /** Longest wait for one answer of the control plane. Default: 30,000. */
  readonly requestTimeoutMs?: number;
  /** Longest wait for one answer from inside a sandbox. Default: 10,000. */
  readonly sandboxRequestTimeoutMs?: number;
  /** Sandboxes asked for in one request of a listing, up to 100. Default: 100. */
  readonly listPageSize?: number;
}

export const defaultDomain = "e2b.app";
const defaultTemplate = "base";

export interface ResolvedE2bOptions extends E2bOptions {
  readonly domain: string;
  readonly apiUrl: string;
  readonly template: string;
  readonly requestTimeoutMs: number;
  readonly sandboxRequestTimeoutMs: number;
  readonly listPageSize: number;
}

/** Fills in the defaults; an empty text, as an unset variable may leave behind, counts as not given. */
export function resolveE2bOptions(options: E2bOptions): ResolvedE2bOptions {
  const domain = options.domain || defaultDomain;
  const { sandboxUrl, ...others } = options;
  return {
    ...others,
    ...(sandboxUrl ? { sandboxUrl } : {}),
    domain,
    apiUrl: options.apiUrl || `https://api.${domain}`,
    template: options.template || defaultTemplate,
    requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    sandboxRequestTimeoutMs: options.sandboxRequestTimeoutMs ?? 10_000,
    listPageSize: options.listPageSize ?? 100,
  };
}
