/** An endpoint as a process of its own, over services that others started. Its options are its argument, as JSON. */
import { type LocalStackOptions, startLocalStack } from "../../functions/local/stack.ts";

const options = JSON.parse(process.argv[2] ?? "{}") as LocalStackOptions;
const stack = await startLocalStack(options);
process.once("SIGTERM", () => void stack.close().then(() => process.exit(0)));
console.log(JSON.stringify({ url: stack.url, apiKey: stack.apiKey }));
