import { FileNotFoundError, FileType, InvalidArgumentError } from "e2b";
import { describe, expect } from "vitest";
import type { Contract } from "./contract.ts";

/** Files and folders. */
export function describeFiles({ shared, fact }: Contract): void {
  const files = () => shared().files;

  describe("files", () => {
    fact("text and bytes come back as they went, in folders made on the way", async () => {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, index) => index % 256);
      const written = await files().write("/tmp/a/b/text", "línea\r\n--x\r\n\r\n");
      expect(written).toMatchObject({ name: "text", path: "/tmp/a/b/text" });
      await files().write("/tmp/a/b/bytes", bytes.buffer);
      expect(await files().read("/tmp/a/b/text")).toBe("línea\r\n--x\r\n\r\n");
      expect(await files().read("/tmp/a/b/bytes", { format: "bytes" })).toEqual(bytes);
    });

    fact("the octet-stream form and an empty file", async () => {
      await files().write("/tmp/stream", "as one stream", { useOctetStream: true });
      await files().write("/tmp/empty", "");
      expect(await files().read("/tmp/stream")).toBe("as one stream");
      expect(await files().read("/tmp/empty")).toBe("");
    });

    fact("several files in one call", async () => {
      const written = await files().write([
        { path: "/tmp/many/1", data: "one" },
        { path: "/tmp/many/2", data: "two" },
      ]);
      expect(written.map((file) => file.path)).toEqual(["/tmp/many/1", "/tmp/many/2"]);
      expect(await files().read("/tmp/many/2")).toBe("two");
    });

    fact("relative paths start at the user's home, and files belong to the user", async () => {
      await files().write("mine", "x");
      await files().write("theirs", "x", { user: "root" });
      const found = await shared().commands.run("test -O ~/mine && ls ~", {});
      expect(found.stdout).toContain("mine");
      expect(await files().exists("/root/theirs", { user: "root" })).toBe(true);
    });

    fact("what isn't there: reading is FileNotFoundError, exists is false", async () => {
      await expect(files().read("/tmp/nothing")).rejects.toThrow(FileNotFoundError);
      expect(await files().exists("/tmp/nothing")).toBe(false);
      await expect(files().getInfo("/tmp/nothing")).rejects.toThrow(FileNotFoundError);
    });

    fact("a folder isn't a file to read or write", async () => {
      await expect(files().read("/tmp")).rejects.toThrow(InvalidArgumentError);
      await expect(files().write("/tmp", "x")).rejects.toThrow(InvalidArgumentError);
    });

    fact("folders: made once, listed with facts, moved, removed", async () => {
      expect(await files().makeDir("/tmp/folder/inner")).toBe(true);
      expect(await files().makeDir("/tmp/folder/inner")).toBe(false);
      await files().write("/tmp/folder/file", "12345");
      const entries = await files().list("/tmp/folder");
      expect(
        entries.map(({ name, type, size }) => [name, type, type === FileType.FILE ? size : null]),
      ).toEqual([
        ["file", FileType.FILE, 5],
        ["inner", FileType.DIR, null],
      ]);
      const moved = await files().rename("/tmp/folder/file", "/tmp/folder/moved");
      expect(moved.path).toBe("/tmp/folder/moved");
      await files().remove("/tmp/folder");
      expect(await files().exists("/tmp/folder")).toBe(false);
    });
  });
}
