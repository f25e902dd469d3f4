/**
 * Weathers of incidents, each of which can be had alone.
 *
 * Between two incidents hardly anything fails, so that it can be told whether the pool has come back to what it was.
 */
import { calm, type Weather } from "./weather.ts";

const mended: Weather = {
  ...calm,
  handlers: { crash: 0, freeze: 0, freezeMs: 0, skewMs: 1_000 },
  crons: { crash: 0, freeze: 0, freezeMs: 0, skewMs: 1_000 },
  cronTwice: 0.2,
  vanish: 0.2,
  cancel: 0.03,
  repeat: 0.05,
  keepsTimes: false,
  isMended: true,
};

export const incidentWeathers: readonly Weather[] = [
  { ...mended, name: "provider away", incidents: ["providerAway"], pause: 0.02 },
  // A long chunk is held through all of it.
  { ...mended, name: "table away", incidents: ["tableAway"], incidentEveryMs: 200_000, longChunk: 0.02 },
  { ...mended, name: "throttled table", incidents: ["tableThrottled"], longChunk: 0.01 },
  { ...mended, name: "edge away", incidents: ["edgePartitioned"], longChunk: 0.01, cancel: 0.08 },
  { ...mended, name: "unreachable workers", incidents: ["workersUnreachable"], cancel: 0.08 },
  {
    ...mended,
    name: "workers die together",
    incidents: ["workersDied"],
    incidentEveryMs: 300_000,
    // Workers die while nobody uses them, too.
    pause: 0.15,
  },
  { ...mended, name: "kills without effect", incidents: ["killsFail", "killsUnheard"] },
  { ...mended, name: "untrue provider", incidents: ["goneUntrue"], longChunk: 0.01 },
  { ...mended, name: "late landings", incidents: ["landingsLate"], incidentEveryMs: 300_000 },
  { ...mended, name: "wrong clocks", incidents: ["clocksWrong"], longChunk: 0.01 },
  { ...mended, name: "chunks longer than a life", endlessChunk: 0.02, lifeMs: 1_200_000 },
  { ...mended, name: "deploys", isDeployed: true, longChunk: 0.01 },
];
