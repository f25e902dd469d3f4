import { describe, expect, it } from "vitest";
import { readConfig, type StageInput } from "../../stacks/config.ts";

const read = (settings: unknown, stage = "dev") =>
  readConfig(stage, { defaults: settings as StageInput, stages: {} });

describe("a stage's settings", () => {
  it("are whole without a word, and cost little", () => {
    expect(read({})).toEqual({
      e2b: { plan: "hobby" },
      endpoint: { auth: "bearer", memoryMib: 1_769 },
      logs: { retentionDays: 30, level: "INFO" },
      alarms: { faultRatio: 0.05, faultRatioMinSamples: 20, orphansKilled: 5 },
      trainer: {
        enabled: false,
        instanceType: "g6.xlarge",
        spot: true,
        diskGib: 200,
        maxHours: 12,
        idleMinutes: 30,
      },
    });
  });

  it("differ where the stage says so, and nowhere else", () => {
    const given = {
      defaults: { e2b: { plan: "hobby", slots: 5 }, logs: { retentionDays: 7 } },
      stages: { production: { e2b: { plan: "pro" } } },
    } as const;
    expect(readConfig("production", given)).toMatchObject({
      e2b: { plan: "pro", slots: 5 },
      logs: { retentionDays: 7 },
    });
    expect(readConfig("dev", given).e2b.plan).toBe("hobby");
  });

  it.each<[string, unknown, string]>([
    ["an unknown plan", { e2b: { plan: "enterprise" } }, "e2b.plan"],
    ["a misspelt setting", { e2b: { slot: 3 } }, 'e2b: Unrecognized key: "slot"'],
    ["an unknown section", { database: {} }, 'Unrecognized key: "database"'],
    ["more slots than there can be", { e2b: { slots: 1_001 } }, "e2b.slots"],
    ["half a slot", { e2b: { slots: 0.5 } }, "e2b.slots"],
    ["a time that the platform has not", { logs: { retentionDays: 31 } }, "logs.retentionDays"],
    ["an address that is none", { alarms: { email: "ops" } }, "alarms.email"],
    ["a ratio in percent", { alarms: { faultRatio: 5 } }, "alarms.faultRatio"],
    ["more memory than there is", { endpoint: { memoryMib: 20_000 } }, "endpoint.memoryMib"],
    ["a machine without a GPU", { trainer: { instanceType: "m7i.large" } }, "trainer.instanceType"],
    ["a machine for ever", { trainer: { maxHours: 10_000 } }, "trainer.maxHours"],
    [
      "a trainer without a key",
      { trainer: { enabled: true }, endpoint: { auth: "aws_iam" } },
      "trainer.enabled",
    ],
  ])("refuse %s", (_, settings, problem) => {
    expect(() => read(settings)).toThrow(problem);
  });

  it("name every problem at once, and the stage", () => {
    const wrong = { e2b: { slots: 0 }, logs: { level: "LOUD" } };
    expect(() => read(wrong, "staging")).toThrow(/stage staging: .*e2b\.slots.*logs\.level/);
  });
});
