/** Texts that others wrote, made fit to be told: bounded, on one line, without secrets. */

const longestTextCharacters = 200;
/** A run of letters and digits that is longer than a word of any language we would be told in. */
const tokenLike = /[A-Za-z0-9+/=_-]{20,}/g;

/**
 * A text without the given secrets and without anything that looks like one: a server may echo a secret that we don't
 * know of, or a part of one. Cut to 200 characters.
 */
export function redact(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret !== "");
  const free = known.reduce((left, secret) => left.replaceAll(secret, "[removed]"), text);
  const printable = free.replace(tokenLike, "[removed]").replace(/[\p{Cc}\p{Cs}\s]+/gu, " ");
  return printable.trim().slice(0, longestTextCharacters);
}

/** A name of an error, or the code of one; `unknown error` when it isn't a plain word. */
export function wordOf(text: string): string {
  return /^[A-Za-z][A-Za-z0-9_]{0,39}$/.test(text) ? text : "unknown error";
}
