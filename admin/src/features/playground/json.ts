/**
 * Finds the position at which a text is not valid JSON. Browsers' own errors differ or lack it.
 * Pure.
 */

export interface Place {
  line: number;
  column: number;
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;
const BLANK = /[ \t\n\r]*/y;

class Fault {
  constructor(readonly at: number) {}
}

class Reader {
  private at = 0;
  constructor(private readonly text: string) {}

  whole() {
    this.blank();
    this.value();
    this.blank();
    if (this.at < this.text.length) throw new Fault(this.at);
  }

  private value() {
    const next = this.text[this.at];
    if (next === "{") return this.list("}", () => this.member());
    if (next === "[") return this.list("]", () => this.value());
    if (!this.take(STRING) && !this.take(NUMBER) && !this.take(WORD)) throw new Fault(this.at);
  }

  private member() {
    if (!this.take(STRING)) throw new Fault(this.at);
    this.blank();
    this.sign(":");
    this.blank();
    this.value();
  }

  private list(end: string, item: () => void) {
    this.at += 1;
    this.blank();
    if (this.text[this.at] === end) return this.sign(end);
    for (;;) {
      item();
      this.blank();
      if (this.text[this.at] !== ",") return this.sign(end);
      this.at += 1;
      this.blank();
    }
  }

  private sign(wanted: string) {
    if (this.text[this.at] !== wanted) throw new Fault(this.at);
    this.at += 1;
  }

  private take(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found === null) return false;
    this.at += found[0].length;
    return true;
  }

  private blank() {
    this.take(BLANK);
  }
}

/** The position at which the text is not valid JSON; `undefined` if it is valid. */
export function faultOf(text: string): Place | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    const before = text.slice(0, faultAt(text)).split("\n");
    return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
  }
}

function faultAt(text: string): number {
  try {
    new Reader(text).whole();
  } catch (fault) {
    if (fault instanceof Fault) return fault.at;
  }
  // The nesting is too deep for this parser.
  return text.length;
}
