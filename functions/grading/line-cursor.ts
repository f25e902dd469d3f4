const TAB = 9;
const SPACE = 32;
const TAB_STOP = 4;

/**
 * A place in one line of a text, counted in characters and in columns (a tab ends at the next multiple of four).
 *
 * Container markers are eaten column by column, so a tab can be eaten in part: `column` is then ahead of `offset`,
 * and what is left of the tab counts as spaces. The next non-blank character is looked up once and kept until the
 * cursor passes it, which is what keeps deeply nested lines linear.
 */
export class LineCursor {
  readonly text: string;
  /** First character that is not eaten. */
  offset = 0;
  /** Just behind the line's last character; the line break is not part of the line. */
  end = 0;
  /** First character from `offset` on that is neither space nor tab; `end` when there is none. */
  nonspace = 0;
  private column = 0;
  private nonspaceColumn = 0;
  private tabIsSplit = false;

  constructor(text: string) {
    this.text = text;
  }

  startLine(start: number, end: number): void {
    this.offset = start;
    this.end = end;
    this.column = 0;
    this.tabIsSplit = false;
    this.findNonspace();
  }

  /** Columns of white space before the next non-blank character. */
  get indent(): number {
    return this.nonspaceColumn - this.column;
  }

  get isBlank(): boolean {
    return this.nonspace === this.end;
  }

  /** Code unit of the next non-blank character, -1 at the line's end. */
  get code(): number {
    return this.nonspace < this.end ? this.text.charCodeAt(this.nonspace) : -1;
  }

  skipIndent(): void {
    this.offset = this.nonspace;
    this.column = this.nonspaceColumn;
    this.tabIsSplit = false;
  }

  /** Eats up to `columns` of white space. */
  skipColumns(columns: number): void {
    let left = Math.min(columns, this.indent);
    while (left > 0) {
      const isTab = this.text.charCodeAt(this.offset) === TAB;
      const width = isTab ? TAB_STOP - (this.column % TAB_STOP) : 1;
      const eaten = Math.min(width, left);
      this.column += eaten;
      left -= eaten;
      this.tabIsSplit = eaten < width;
      if (!this.tabIsSplit) this.offset += 1;
    }
  }

  /** Eats the indent and a marker of `length` characters, none of them a tab. */
  skipMarker(length: number): void {
    this.offset = this.nonspace + length;
    this.column = this.nonspaceColumn + length;
    this.tabIsSplit = false;
    this.findNonspace();
  }

  /** What is left of the line, the rest of a split tab as spaces. */
  rest(): string {
    if (!this.tabIsSplit) return this.text.slice(this.offset, this.end);
    const spaces = " ".repeat(TAB_STOP - (this.column % TAB_STOP));
    return spaces + this.text.slice(this.offset + 1, this.end);
  }

  private findNonspace(): void {
    let position = this.offset;
    let column = this.column;
    while (position < this.end) {
      const code = this.text.charCodeAt(position);
      if (code === SPACE) column += 1;
      else if (code === TAB) column += TAB_STOP - (column % TAB_STOP);
      else break;
      position += 1;
    }
    this.nonspace = position;
    this.nonspaceColumn = column;
  }
}
