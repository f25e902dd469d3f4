import { CommandExitError, type CommandStartOpts, InvalidArgumentError, TimeoutError } from "e2b";
import { describe, expect } from "vitest";
import type { Contract } from "./contract.ts";
import { eventually } from "./sandboxes.ts";

/** Commands: their surroundings, ends, time limits, input, and life without a listener. */
export function describeCommands({ shared, fact }: Contract): void {
  const run = (command: string, options: CommandStartOpts & { background?: false } = {}) =>
    shared().commands.run(command, options);

  describe("commands", () => {
    fact("both outputs and the exit code come apart", async () => {
      const result = await run("echo out; echo err >&2");
      expect(result).toMatchObject({ stdout: "out\n", stderr: "err\n", exitCode: 0 });
    });

    fact("an exit code other than 0 is a CommandExitError with the outputs", async () => {
      const error = await run("echo partly; exit 3").catch((thrown) => thrown);
      expect(error).toBeInstanceOf(CommandExitError);
      expect(error).toMatchObject({ exitCode: 3, stdout: "partly\n" });
    });

    fact("a signal's end is a CommandExitError", async () => {
      const error = await run("kill -KILL $$").catch((thrown) => thrown);
      expect(error).toBeInstanceOf(CommandExitError);
      expect(error).toMatchObject({ exitCode: -1, error: "signal: killed" });
    });

    fact("a working directory that isn't there is an InvalidArgumentError", async () => {
      await expect(run("true", { cwd: "/nowhere" })).rejects.toThrow(InvalidArgumentError);
    });

    fact("environment: the command's own, then the creation's; folder and user as asked", async () => {
      const told = 'echo "$OWN $FROM_CREATION $(pwd) $HOME $USER"';
      const asUser = await run(told, { envs: { OWN: "a b" } });
      expect(asUser.stdout).toBe("a b yes /home/user /home/user user\n");
      const asRoot = await run(`${told}; id -u`, { cwd: "/tmp", user: "root", envs: { OWN: "c" } });
      expect(asRoot.stdout).toBe("c yes /tmp /root root\n0\n");
    });

    fact("python3 is there, with its standard library", async () => {
      const result = await run(
        `python3 -c 'import ctypes, json, ssl, sys; print(sys.version_info >= (3, 9))'`,
      );
      expect(result.stdout).toBe("True\n");
    });

    fact("root may make user, mount and pid namespaces, mount proc and tmpfs in them", async () => {
      const inner = "mount -t tmpfs none /tmp && touch /tmp/x && ls /proc | grep -c '^[0-9]' && id -u";
      const result = await run(`unshare -U -r -m -p -f --mount-proc sh -c "${inner}"`, { user: "root" });
      expect(result.stdout).toMatch(/^[1-9]\n0\n$/);
    });

    fact("large outputs arrive whole", async () => {
      const result = await run("head -c 3000000 /dev/zero | tr '\\0' x");
      expect(result.stdout.length).toBe(3_000_000);
    });

    fact("a time limit is a TimeoutError, kills the command, and not its children", async () => {
      const command = "(sleep 0.8; echo alive > /tmp/child) > /dev/null 2>&1 & exec sleep 98.76";
      await expect(run(command, { timeoutMs: 300 })).rejects.toThrow(TimeoutError);
      await eventually("the child's work", () => shared().files.exists("/tmp/child"));
      const left = await run(
        "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 98[.]76' || true",
      );
      expect(left.stdout.trim()).toBe("0");
    });

    fact("a grandchild that holds the output delays the end", async () => {
      const startMs = Date.now();
      await run("sleep 0.6 & true");
      expect(Date.now() - startMs).toBeGreaterThan(550);
    });

    fact("a background command outlives its caller, is listed, heard again, and killed once", async () => {
      const command = "while [ ! -e /tmp/go ]; do sleep 0.02; done; echo late; sleep 600";
      const first = await shared().commands.run(command, { background: true, timeoutMs: 0 });
      await first.disconnect();
      expect((await shared().commands.list()).map((process) => process.pid)).toContain(first.pid);
      let heard = "";
      const onStdout = (text: string) => {
        heard += text;
      };
      const again = await shared().commands.connect(first.pid, { timeoutMs: 0, onStdout });
      await shared().files.write("/tmp/go", "");
      await eventually("the late output", async () => heard === "late\n");
      expect(await shared().commands.kill(first.pid)).toBe(true);
      await expect(again.wait()).rejects.toThrow(CommandExitError);
      const isGone = async () => !(await shared().commands.list()).some(({ pid }) => pid === first.pid);
      await eventually("the process isn't listed", isGone);
      expect(await shared().commands.kill(first.pid)).toBe(false);
    });

    fact("standard input: sent in parts, then closed", async () => {
      const handle = await shared().commands.run("cat; echo done", { background: true, stdin: true });
      await shared().commands.sendStdin(handle.pid, "one ");
      await shared().commands.sendStdin(handle.pid, "two\n");
      await shared().commands.closeStdin(handle.pid);
      expect((await handle.wait()).stdout).toBe("one two\ndone\n");
    });

    fact("without standard input a command reads its end at once", async () => {
      expect((await run("cat; echo done")).stdout).toBe("done\n");
    });

    fact("a dozen commands run at one time", async () => {
      const numbers = Array.from({ length: 12 }, (_, index) => index);
      const results = await Promise.all(numbers.map((number) => run(`sleep 0.2; echo ${number}`)));
      expect(results.map((result) => Number(result.stdout))).toEqual(numbers);
    });

    fact("with allowInternetAccess off there is no way out", async () => {
      const dial = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)";
      for (const address of ["1.1.1.1 443", "8.8.8.8 53", "169.254.169.254 80"]) {
        const error = await run(`python3 -c '${dial}' ${address}`).catch((thrown) => thrown);
        expect(error).toBeInstanceOf(CommandExitError);
        expect(error.stderr).toMatch(/unreachable|timed out|refused/);
      }
    });
  });
}
