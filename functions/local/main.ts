/** `npm run local`: serves the product on loopback until it is told to stop. */
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../command-arguments.ts";
import { type Ending, listenForEnd } from "./ending.ts";
import { readEnvironment } from "./environment.ts";
import { listServices, requireReachable } from "./reach.ts";
import { endWithError, requireLinux } from "./refusal.ts";
import { type LocalStack, type LocalStackOptions, startLocalStack } from "./stack.ts";

const usage = `npm run local -- [--port 8787] [--plan hobby|pro] [--slots N] [--no-cron]

  --port N      where to listen on 127.0.0.1; 0 takes a free port
  --plan NAME   the E2B plan whose limits are kept to: hobby (default) or pro
  --slots N     sandboxes at once; default: what the plan allows
  --no-cron     don't sweep the pool every minute; POST /local/sweep does it once, with the same key

  CODE_REWARDS_API_KEY          the key that callers send; default: a new one, printed
  E2B_API_URL, E2B_SANDBOX_URL  an E2B to use instead of the embedded one (with E2B_API_KEY)
  DYNAMODB_ENDPOINT             a DynamoDB to use instead of the embedded one`;

function readOptions(): Pick<LocalStackOptions, "port" | "plan" | "slots" | "cron"> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8787" },
      plan: { type: "string", default: "hobby" },
      slots: { type: "string" },
      "no-cron": { type: "boolean", default: false },
    },
  });
  if (values.plan !== "hobby" && values.plan !== "pro") {
    throw new Error(`--plan must be hobby or pro, not '${values.plan}'`);
  }
  return {
    port: readInteger("--port", values.port, 0, 65_535),
    plan: values.plan,
    cron: !values["no-cron"],
    ...(values.slots === undefined ? {} : { slots: readInteger("--slots", values.slots, 1, 1_000) }),
  };
}

/** Serves until it is told to end; the process's exit code. */
async function serve(options: LocalStackOptions, ending: Ending): Promise<number> {
  let stack: LocalStack;
  try {
    await requireReachable(listServices(options), ending.signal);
    stack = await startLocalStack({ ...options, signal: ending.signal });
  } catch (error) {
    if (ending.signal.aborted && error === ending.signal.reason) return ending.exitCode();
    throw error;
  }
  console.log(
    JSON.stringify({
      ready: true,
      url: stack.url,
      api_key: stack.apiKey,
      e2b_api_url: stack.e2b.apiUrl,
      e2b_sandbox_url: stack.e2b.sandboxUrl,
      dynamodb_endpoint: stack.dynamoDbEndpoint,
      table: stack.tableName,
    }),
  );
  await ending.asked;
  await stack.close();
  return 0; // to end when it is told to is what it is for
}

const options = readArguments(readOptions, usage);
requireLinux();
const ending = listenForEnd();
try {
  process.exit(await serve({ ...options, ...readEnvironment(process.env) }, ending));
} catch (error) {
  endWithError(error);
}
