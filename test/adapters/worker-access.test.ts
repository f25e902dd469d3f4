import { describe, expect, it } from "vitest";
import { resolveE2bOptions } from "../../functions/adapters/e2b-options.ts";
import {
  connectionTo,
  readAccess,
  supervisorPort,
  writeAccess,
} from "../../functions/adapters/worker-access.ts";
import { deriveWorkerSecret } from "../../functions/adapters/worker-secret.ts";
import { collect, doublingChunk, factoryFor, never } from "./cloud.ts";

const token = "0f".repeat(32);
const poolId = "5f0c7c43-6f1e-4f0e-9b1e-0d8f5f5ed7b7";
const access = { poolId, trafficToken: token, domain: null, instance: null };

describe("a worker's access text", () => {
  it.each([
    { what: "E2B's token", value: access },
    { what: "a domain of its own", value: { ...access, domain: "sandboxes.example.org" } },
    { what: "a supervisor's instance", value: { ...access, instance: "Ab_-3xYz" } },
    { what: "an instance that looks like none", value: { ...access, instance: "-", domain: "x.org" } },
    { what: "no token", value: { ...access, trafficToken: null } },
    { what: "a token of another form", value: { ...access, trafficToken: "Ab c/+%~-ü" } },
    { what: "a token in capitals", value: { ...access, trafficToken: "ABCD" } },
    { what: "an odd number of digits", value: { ...access, trafficToken: "abc" } },
    { what: "a pool id with spaces", value: { ...access, poolId: "my pool" } },
  ])("keeps $what", ({ value }) => {
    const text = writeAccess(value);
    expect(readAccess(text)).toEqual(value);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(130);
  });

  it.each([
    "",
    "x",
    "x ",
    "q abc",
    "x a",
    "x a - c d",
    "tabc%E0%A4%A pool -",
    `${"a".repeat(64)} ${"b".repeat(64)}`,
  ])("that can't be read (%j) is a lost worker when it is used, not before", async (text) => {
    const worker = { sandboxId: "i1", slot: 0, generation: 1, access: text };
    const executor = factoryFor({ apiKey: "e2b_test" }).attach(worker);
    await expect(collect(executor.execute(doublingChunk("c"), 1, never))).rejects.toMatchObject({
      name: "Fault",
      code: "worker_lost",
    });
  });
});

describe("a worker's address", () => {
  const worker = { sandboxId: "i123", generation: 4, access: writeAccess(access) };
  const secret = deriveWorkerSecret("e2b_test", poolId, worker);

  it.each([
    { options: {}, host: "e2b.app" },
    { options: { domain: "cloud.example.org" }, host: "cloud.example.org" },
    { options: { domain: "", sandboxUrl: "" }, host: "e2b.app" },
  ])("is E2B's for the port, with $options", ({ options, host }) => {
    const connection = connectionTo(resolveE2bOptions({ apiKey: "e2b_test", ...options }), worker);
    expect(connection).toEqual({
      baseUrl: `https://${supervisorPort}-i123.${host}`,
      headers: { authorization: `Bearer ${secret}`, "e2b-traffic-access-token": token },
    });
  });

  it("names the life of the supervisor that it is meant for", () => {
    const known = { ...worker, access: writeAccess({ ...access, instance: "Ab_-3xYz" }) };
    const { headers } = connectionTo(resolveE2bOptions({ apiKey: "e2b_test" }), known);
    expect(headers).toMatchObject({ "x-supervisor-instance": "Ab_-3xYz" });
  });

  it("is on the sandbox's own domain where the creation named one", () => {
    const moved = { ...worker, access: writeAccess({ ...access, domain: "eu.example.org" }) };
    const { baseUrl } = connectionTo(resolveE2bOptions({ apiKey: "e2b_test" }), moved);
    expect(baseUrl).toBe(`https://${supervisorPort}-i123.eu.example.org`);
  });

  it("is the one sandbox URL with routing headers, where there is one", () => {
    const options = resolveE2bOptions({ apiKey: "e2b_test", sandboxUrl: "http://127.0.0.1:4000" });
    expect(connectionTo(options, worker)).toMatchObject({
      baseUrl: "http://127.0.0.1:4000",
      headers: { "E2b-Sandbox-Id": "i123", "E2b-Sandbox-Port": String(supervisorPort) },
    });
  });

  it("takes the control plane from the domain unless it is named", () => {
    expect(resolveE2bOptions({ apiKey: "k", domain: "x.org" }).apiUrl).toBe("https://api.x.org");
    expect(resolveE2bOptions({ apiKey: "k", apiUrl: "http://y" }).apiUrl).toBe("http://y");
  });
});

describe("a worker's secret", () => {
  const mine = { sandboxId: "i1", generation: 1 };
  it.each([
    { other: "key", secret: deriveWorkerSecret("e2b_b", "p", mine) },
    { other: "pool", secret: deriveWorkerSecret("e2b_a", "q", mine) },
    { other: "sandbox", secret: deriveWorkerSecret("e2b_a", "p", { ...mine, sandboxId: "i2" }) },
    { other: "generation", secret: deriveWorkerSecret("e2b_a", "p", { ...mine, generation: 2 }) },
  ])("is another one for another $other", ({ secret }) => {
    const own = deriveWorkerSecret("e2b_a", "p", mine);
    expect(own).toBe(deriveWorkerSecret("e2b_a", "p", { ...mine }));
    expect(secret).not.toBe(own);
    expect(Buffer.from(own, "base64url")).toHaveLength(32);
  });
});
