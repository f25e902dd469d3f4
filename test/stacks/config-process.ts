/** Reads the configuration as a function does, and prints it, or the fault. */
import { loadConfig } from "../../functions/config.ts";

try {
  console.log(JSON.stringify(loadConfig(process.env)));
} catch (error) {
  const { name, code, message } = error as { name: string; code?: string; message: string };
  console.log(JSON.stringify({ name, code, message }));
}
