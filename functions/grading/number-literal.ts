/**
 * Numbers as programs print them. Scanned by hand: a regular expression for them takes quadratic time on a long run of
 * digits with a letter behind it.
 */
export interface NumberLiteral {
  /** Digits only, with or without a sign. */
  readonly isInteger: boolean;
  /** The literal's exact value, in one form for all its spellings; null where its exponent is beyond all use. */
  readonly exact: string | null;
  /** The nearest double; infinite for what is too large for one. */
  readonly value: number;
}

const DIGIT_0 = 48;
const DIGIT_9 = 57;
/** More digits than an exponent can have whose number is worth comparing. */
const LONGEST_EXPONENT = 15;

/** Reads `-12`, `+012`, `1.50`, `.5`, `5.`, `1e-3`; null for anything else (`nan`, `inf`, `0x1f`, `1_000`, `1,5`). */
export function readNumberLiteral(token: string): NumberLiteral | null {
  const first = token.charAt(0);
  const start = first === "+" || first === "-" ? 1 : 0;
  const wholeEnd = skipDigits(token, start);
  const hasPoint = token.charAt(wholeEnd) === ".";
  const fractionStart = hasPoint ? wholeEnd + 1 : wholeEnd;
  const mantissaEnd = skipDigits(token, fractionStart);
  if (wholeEnd - start + (mantissaEnd - fractionStart) === 0) return null;
  const exponent = readExponent(token, mantissaEnd);
  if (exponent === null) return null;
  const whole = token.slice(start, wholeEnd);
  const fraction = token.slice(fractionStart, mantissaEnd);
  return {
    isInteger: !hasPoint && exponent === "",
    exact: writeExact(first === "-", whole, fraction, exponent),
    value: Number(token),
  };
}

/** The exponent's sign and digits, empty for none; null when what stands there is no exponent. */
function readExponent(token: string, at: number): string | null {
  if (at === token.length) return "";
  const letter = token.charAt(at);
  if (letter !== "e" && letter !== "E") return null;
  const sign = token.charAt(at + 1);
  const start = sign === "+" || sign === "-" ? at + 2 : at + 1;
  const end = skipDigits(token, start);
  return end === start || end < token.length ? null : token.slice(at + 1);
}

/** Digits without zeros around them, and the power of ten that they are multiplied by. */
function writeExact(isNegative: boolean, whole: string, fraction: string, exponent: string): string | null {
  const digits = whole + fraction;
  let from = 0;
  while (from < digits.length && digits.charCodeAt(from) === DIGIT_0) from += 1;
  if (from === digits.length) return "0";
  let to = digits.length;
  while (digits.charCodeAt(to - 1) === DIGIT_0) to -= 1;
  const shift = readSmallInteger(exponent);
  if (shift === null) return null;
  const power = shift - fraction.length + (digits.length - to);
  return `${isNegative ? "-" : ""}${digits.slice(from, to)}e${power}`;
}

function readSmallInteger(text: string): number | null {
  if (text === "") return 0;
  let at = text.startsWith("+") || text.startsWith("-") ? 1 : 0;
  while (at < text.length - 1 && text.charCodeAt(at) === DIGIT_0) at += 1;
  if (text.length - at > LONGEST_EXPONENT) return null;
  return text.startsWith("-") ? -Number(text.slice(at)) : Number(text.slice(at));
}

function skipDigits(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); code >= DIGIT_0 && code <= DIGIT_9; code = text.charCodeAt(at))
    at += 1;
  return at;
}
