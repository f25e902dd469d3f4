import { describe, expect, it } from "vitest";
import { describeError } from "../../functions/log-lines.ts";
import { Fault } from "../../functions/rewards/faults.ts";

const secret = "planted secret = 'a' + \"b\"";

function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

describe("a bug in the log", () => {
  it.each<{ what: string; act: () => unknown; says: string }>([
    {
      what: "JSON that is none",
      act: () => JSON.parse(secret),
      says: "SyntaxError: Unexpected token [left out]",
    },
    {
      what: "a header that can't be sent",
      act: () => new Headers({ authorization: `Bearer ${secret}\n${secret}` }),
      says: "TypeError: Headers.append: [left out]",
    },
    {
      what: "a message on several lines, like a stack",
      act: () => {
        throw new Error(`"${secret}\n    at ${secret}\n    at planted (secret.ts:1:1)"`);
      },
      says: "Error: [left out]",
    },
    {
      what: "a token without quotes",
      act: () => {
        throw new Error("no access with Planted0Secret1Token2That3Is4Long");
      },
      says: "Error: no access with [removed]",
    },
    {
      what: "a message that was changed after the stack was written",
      act: () => {
        const error = new Error(secret);
        error.message = "changed";
        throw error;
      },
      says: "Error: changed",
    },
    {
      what: "no error at all",
      act: () => {
        throw secret;
      },
      says: "something of type string was thrown",
    },
  ])("is told without what it quotes: $what", ({ act, says }) => {
    const { code, detail } = describeError(thrownBy(act));
    expect({ code, detail }).toEqual({ code: "internal", detail: expect.stringContaining(says) });
    expect(detail).not.toMatch(/planted secret|Planted0|secret\.ts/);
  });

  it("has the places that it came by", () => {
    const { detail } = describeError(thrownBy(() => JSON.parse("{")));
    expect(detail).toContain("log-lines.test.ts");
  });
});

describe("a fault in the log", () => {
  it.each<{ what: string; fault: unknown; told: object }>([
    {
      what: "as it was thrown",
      fault: new Fault("worker_lost", 'The worker "w" was lost.', { cause: new Error(secret) }),
      told: { code: "worker_lost", detail: 'The worker "w" was lost.' },
    },
    {
      what: "of a pass over the pool",
      fault: { action: "kill", code: "sandbox_unavailable", detail: "E2B did not answer" },
      told: { action: "kill", code: "sandbox_unavailable", detail: "E2B did not answer" },
    },
    {
      what: "of a pass that met a bug",
      fault: { action: "kill", code: "internal", detail: `bad "${secret}"` },
      told: { action: "kill", code: "internal", detail: "bad [left out]" },
    },
  ])("is told by its code and its own words: $what", ({ fault, told }) => {
    expect(describeError(fault)).toEqual(told);
  });
});
