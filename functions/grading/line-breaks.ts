/** Where the lines of a text end and begin. A line ends with LF, CR LF or CR. */
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Start of the line behind the one that ends at `end`. */
export function nextLine(text: string, end: number): number {
  const isPair = text.charCodeAt(end) === CARRIAGE_RETURN && text.charCodeAt(end + 1) === LINE_FEED;
  return end + (isPair ? 2 : 1);
}

/** End of the line that `from` is on, its break excluded. Looks no further than that, wherever it is asked. */
export function lineEndFrom(text: string, from: number): number {
  let position = from;
  while (position < text.length && !isBreak(text.charCodeAt(position))) position += 1;
  return position;
}

function isBreak(code: number): boolean {
  return code === LINE_FEED || code === CARRIAGE_RETURN;
}

/** The same from line to line in order. Each kind of break is searched for once, wherever the next one is. */
export class LineBreaks {
  private readonly text: string;
  private nextLineFeed = -1;
  private nextCarriageReturn = -1;

  constructor(text: string) {
    this.text = text;
  }

  /** End of the line that `position` is on, its break excluded. Positions asked for never decrease. */
  findEnd(position: number): number {
    if (this.nextLineFeed < position) this.nextLineFeed = this.find("\n", position);
    if (this.nextCarriageReturn < position) this.nextCarriageReturn = this.find("\r", position);
    return Math.min(this.nextLineFeed, this.nextCarriageReturn);
  }

  private find(character: string, position: number): number {
    const found = this.text.indexOf(character, position);
    return found < 0 ? this.text.length : found;
  }
}
