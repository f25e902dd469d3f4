/** JSON pointers (RFC 6901), built only when something has to be pointed at. */
export type Path = (string | number)[];

/** A name in a request may be megabytes long; an error about it must not be. */
const LONGEST_NAME = 400;

/** Escapes `~` and `/`. A name that is too long to be repeated is left out: the pointer then ends at its parent. */
export function formatPointer(path: Readonly<Path>): string {
  let pointer = "";
  for (const part of path) {
    if (typeof part === "string" && part.length > LONGEST_NAME) return pointer;
    pointer += `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`;
  }
  return pointer;
}

/** A name as it may stand in a sentence. */
export function quoteName(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}
