/** `npm run local`: serves the product on loopback until it is told to stop. */
import { parseArgs } from "node:util";
import { refuseToStart, requireLinux } from "./refusal.ts";
import { startLocalStack } from "./stack.ts";

const usage = `npm run local -- [--port 8787] [--workers 2]

  --port N      where to listen on 127.0.0.1; 0 takes a free port
  --workers N   how many workers run programs; they share this machine's CPUs

  CODE_REWARDS_API_KEY   the key that callers send; default: a new one, printed
  CODE_REWARDS_PYTHON    the interpreter that runs programs; default: python3`;

interface Arguments {
  readonly port: number;
  readonly workers?: number;
}

function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8787" },
      workers: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  return {
    port: readInteger("--port", values.port, 0, 65_535),
    ...(values.workers === undefined ? {} : { workers: readInteger("--workers", values.workers, 1, 64) }),
  };
}

function readInteger(name: string, text: string, low: number, high: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw new Error(`${name} must be a whole number from ${low} to ${high}, not '${text}'`);
  }
  return value;
}

function parseOrExplain(): Arguments {
  try {
    return readArguments();
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

const { CODE_REWARDS_API_KEY: apiKey, CODE_REWARDS_PYTHON: python } = process.env;
const options = parseOrExplain();
requireLinux();
try {
  const stack = await startLocalStack({ ...options, ...(apiKey && { apiKey }), ...(python && { python }) });
  console.log(JSON.stringify({ ready: true, url: stack.url, api_key: stack.apiKey }));
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void stack.close().then(() => process.exit(0), refuseToStart));
  }
} catch (error) {
  refuseToStart(error);
}
