/**
 * What you change. Every setting, its range and its default are in `config.ts`; anything unknown is refused before a
 * deployment begins.
 */
import type { StageInput } from "./config.ts";

export interface StageSettings {
  /** For all stages. */
  readonly defaults: StageInput;
  /** What differs in one. */
  readonly stages: Readonly<Record<string, StageInput>>;
}

export const settings: StageSettings = {
  defaults: {
    e2b: { plan: "hobby" },
  },
  stages: {
    production: {
      logs: { retentionDays: 90 },
    },
  },
};
