/** A function finds its secrets where a deployment puts them: in an encrypted file beside it. */
import { execFile } from "node:child_process";
import { createCipheriv, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";

let folder: string;
const key = randomBytes(32);

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "code-rewards-links-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** As SST writes it: AES-256-GCM, a nonce of zeros (the key is used for this file alone), the tag at the end. */
function writeLinks(links: Readonly<Record<string, unknown>>): void {
  const cipher = createCipheriv("aes-256-gcm", key, Buffer.alloc(12));
  const sealed = [cipher.update(JSON.stringify(links)), cipher.final(), cipher.getAuthTag()];
  writeFileSync(join(folder, "resource.enc"), Buffer.concat(sealed));
}

const deployed = {
  SST_KEY: key.toString("base64"),
  SST_KEY_FILE: "resource.enc",
  SST_RESOURCE_App: '{"name":"code-rewards","stage":"ci"}',
  CODE_REWARDS_TABLE: "table",
};
const secrets = {
  E2bApiKey: { type: "sst.sst.Secret", value: "linked-e2b-key" },
  RewardApiKeys: { type: "sst.sst.Secret", value: "linked-new, linked-old" },
};

async function readConfig(environment: Readonly<Record<string, string>>) {
  const script = fileURLToPath(new URL("config-process.ts", import.meta.url));
  const loader = import.meta.resolve("tsx");
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", loader, script], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...environment },
  });
  return JSON.parse(stdout);
}

it("and needs nothing of them in its environment", async () => {
  writeLinks(secrets);
  expect(await readConfig(deployed)).toMatchObject({
    apiKeys: ["linked-new", "linked-old"],
    e2b: { apiKey: "linked-e2b-key" },
  });
});

it("and takes what its environment says instead, where somebody set it", async () => {
  writeLinks(secrets);
  expect(await readConfig({ ...deployed, E2B_API_KEY: "own" })).toMatchObject({ e2b: { apiKey: "own" } });
});

it("and knows no caller's key where callers sign", async () => {
  writeLinks({ E2bApiKey: secrets.E2bApiKey });
  const config = await readConfig({ ...deployed, CODE_REWARDS_AUTH: "aws_iam" });
  expect(config).toMatchObject({ apiKeys: [], signedCallers: true });
});

it.each<[string, Record<string, string>, string]>([
  ["that were not linked", {}, "CODE_REWARDS_API_KEYS: is not set"],
  ["under another key", { SST_KEY: randomBytes(32).toString("base64") }, "the linked secrets can't be read"],
  ["in no file", { SST_KEY_FILE: "nowhere.enc" }, "the linked secrets can't be read"],
])("and says what is wrong of secrets %s, without a value", async (_, changes, message) => {
  writeLinks({ E2bApiKey: secrets.E2bApiKey });
  const fault = await readConfig({ ...deployed, ...changes });
  expect(fault).toMatchObject({ code: "misconfigured", message: expect.stringContaining(message) });
  expect(JSON.stringify(fault)).not.toContain("linked-");
});
