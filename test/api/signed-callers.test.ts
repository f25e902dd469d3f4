/** Callers whom the platform in front has identified by their signatures. */
import { expect, it } from "vitest";
import { createTestApp } from "./test-app.ts";

const role = "arn:aws:sts::123456789012:assumed-role/trainer";

function eventOf(userArn: unknown) {
  return { requestContext: { authorizer: { iam: { accountId: "123456789012", userArn } } } };
}

function ask(platform: unknown, headers: Readonly<Record<string, string>> = {}) {
  const { app } = createTestApp({ signedCallers: true });
  return app.request("/readyz", { headers: { ...headers } }, platform as object);
}

it.each(["arn:aws:iam::123456789012:user/anna", `${role}/session-1`])(
  "%s is let in, without a key",
  async (arn) => {
    expect((await ask(eventOf(arn))).status).toBe(200);
  },
);

it.each<[string, unknown]>([
  ["nothing of the platform's", undefined],
  ["no authorizer", { requestContext: {} }],
  ["no identity", eventOf("")],
  ["an identity that is no text", eventOf(7)],
  ["a key instead", { requestContext: { authorizer: null } }],
])("with %s a request is refused", async (_, platform) => {
  const answer = await ask(platform, { authorization: "Bearer the-key" });
  expect(answer.status).toBe(401);
  expect(await answer.json()).toMatchObject({
    code: "unauthorized",
    detail: expect.stringContaining("SigV4"),
  });
});

it("names batches for each caller apart, and for all sessions of a role alike", async () => {
  const asked: string[] = [];
  const cancelBatch = async (batchId: string) => {
    asked.push(batchId);
    return { kind: "batch_not_found" } as const;
  };
  const { app } = createTestApp({ signedCallers: true, cancelBatch });
  for (const arn of [`${role}/one`, `${role}/two`, `${role}-2/one`, "arn:aws:iam::123456789012:user/one"]) {
    await app.request("/v1/batches/key", { method: "DELETE" }, eventOf(arn));
  }
  expect(asked[1]).toBe(asked[0]);
  expect(new Set(asked).size).toBe(3);
});
