/** Faults at random on every way out of the product: calm times, times in which one service fails, and storms. */
import type { Fault, SeenRequest, ServicePath } from "../faults/proxy/fault.ts";
import type { FaultProxy } from "../faults/proxy/fault-proxy.ts";
import type { Random } from "./random.ts";

const paths: readonly ServicePath[] = ["control", "envd", "supervisor", "table"];

/** How likely a request of each path fails. */
type Weather = Readonly<Record<ServicePath, number>>;

const calm: Weather = { control: 0, envd: 0, supervisor: 0, table: 0 };

const weathers: readonly (readonly [weight: number, weather: Weather])[] = [
  [2, calm],
  [2, { control: 0.05, envd: 0.05, supervisor: 0.05, table: 0.02 }],
  [2, { ...calm, control: 0.4 }],
  [2, { ...calm, envd: 0.3 }],
  [2, { ...calm, supervisor: 0.25 }],
  [2, { ...calm, table: 0.2 }],
  [1, { control: 0.3, envd: 0.2, supervisor: 0.2, table: 0.15 }],
];

type Draw = (random: Random) => Fault;

const status =
  (code: number, body?: string): Draw =>
  () => ({ kind: "answer", status: code, ...(body === undefined ? {} : { body }) });
const throttled: Draw = () => ({ kind: "answer", status: 429, headers: { "retry-after": "1" } });

const everywhere: readonly Draw[] = [
  () => ({ kind: "reset_before" }),
  () => ({ kind: "reset_after" }),
  (random) => ({ kind: "cut", afterBytes: random.integer(0, 200) }),
  (random) => ({ kind: "delay", ms: random.integer(50, 1_500) }),
  (random) => ({ kind: "late_request", ms: random.integer(1_000, 9_000) }),
  (random) => ({ kind: "late_answer", ms: random.integer(1_000, 9_000) }),
  (random) => ({ kind: "drip", bytes: 64, everyMs: random.integer(1, 30) }),
  (random) => ({ kind: "twice", answered: random.pick(["first", "second"]) }),
  () => ({ kind: "hang_before" }),
  () => ({ kind: "hang_after" }),
];

const gateways: readonly Draw[] = [
  status(500),
  status(502, "<html>Bad Gateway</html>"),
  status(503),
  status(504, "upstream request timeout"),
];

const kinds: Readonly<Record<ServicePath, readonly Draw[]>> = {
  control: [
    ...everywhere,
    ...gateways,
    throttled,
    status(500, '{"code":500,"message":"Failed to place sandbox"}'),
    (random) => ({ kind: "skew", offsetMs: random.integer(-60_000, 60_000) }),
  ],
  envd: [...everywhere, ...gateways, throttled],
  supervisor: [
    ...everywhere,
    ...gateways,
    throttled,
    status(502, '{"code":502,"message":"The sandbox was not found"}'),
    status(502, '{"code":502,"port":8080,"message":"The sandbox is running but port is not open"}'),
    () => ({ kind: "rewrite", body: (answer) => `${answer}{"type":"summary"` }),
    () => ({ kind: "rewrite", body: doubleLines }),
    () => ({ kind: "rewrite", body: withoutLastLine }),
  ],
  table: [
    ...everywhere,
    status(500, '{"__type":"InternalServerError"}'),
    status(503, '{"__type":"ServiceUnavailable"}'),
    status(400, '{"__type":"ProvisionedThroughputExceededException"}'),
    status(400, '{"__type":"ThrottlingException"}'),
  ],
};

function doubleLines(answer: string): string {
  return answer
    .split("\n")
    .flatMap((line) => (line === "" ? [line] : [line, line]))
    .join("\n");
}

function withoutLastLine(answer: string): string {
  return answer.replace(/[^\n]*\n$/, "");
}

/** Which request of each path fails in any case: in a short time on a slow machine chance alone may spare one. */
const surelyFails = 3;
const busy: Fault = { kind: "answer", status: 503 };

export interface Sky {
  /** Changes the weather every few seconds until it is told to be calm. */
  change(): void;
  calmDown(): void;
}

export function openSky(proxy: FaultProxy, random: Random): Sky {
  let weather = calm;
  const decide = (path: ServicePath) => (_: SeenRequest, nth: number) => {
    if (nth === surelyFails) return busy;
    return random.chance(weather[path]) ? random.pick(kinds[path])(random) : null;
  };
  for (const path of paths) proxy.add({ name: path, path, fault: decide(path) });
  return {
    change: () => {
      weather = random.pickWeighted(weathers);
    },
    calmDown: () => {
      weather = calm;
    },
  };
}
