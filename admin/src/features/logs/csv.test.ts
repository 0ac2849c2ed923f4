import { spawnSync } from "node:child_process";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { call } from "@/api/client";
import { cell } from "@/parts/csv";
import type { Entry } from "@/parts/request/entry";
import { COLUMNS, exportCsv } from "./csv";

vi.mock("@/api/client", () => ({ call: vi.fn() }));

/** What spreadsheets and pandas must show for each of these texts. */
const TEXTS: [sent: string, shown: string][] = [
  ["naïve 数学 🦀", "naïve 数学 🦀"],
  ["张伟, 李娜", "张伟, 李娜"],
  ['say "hi"', 'say "hi"'],
  ["one\r\ntwo\nthree\rfour", "one\r\ntwo\nthree\rfour"],
  ["", ""],
  [" padded ", " padded "],
  ["nul\0byte", "nul\ufffdbyte"],
  ["half \ud83d of a pair", "half \ufffd of a pair"],
  ["=1+1", "'=1+1"],
  ["+1", "'+1"],
  ["-2", "'-2"],
  ["@sum(a1)", "'@sum(a1)"],
  [" =1+1", "' =1+1"],
  ["\t=1+1", "'\t=1+1"],
  ["\n=1+1", "'\n=1+1"],
  ["\r=1+1", "'\r=1+1"],
  ["\ufeff=1+1", "'\ufeff=1+1"],
  ["＝1+1", "'＝1+1"],
  ["＠sum(a1)", "'＠sum(a1)"],
  ["a=1", "a=1"],
  ['=a,"b"', `'=a,"b"`],
];

const entry = (text: string) =>
  ({ userName: text, model: "m", statusCode: 200, costUsd: -0.5, errorMessage: text }) as Entry;

/** The file as a program gets it. */
async function file(): Promise<Uint8Array> {
  const logs = TEXTS.map(([sent]) => entry(sent));
  vi.mocked(call).mockResolvedValueOnce({ logs, total: logs.length, nextCursor: null } as never);
  const { text, rows, cut } = await exportCsv({}, () => {}, new AbortController().signal);
  expect([rows, cut]).toEqual([TEXTS.length, false]);
  return new TextEncoder().encode(text);
}

/** The records of a file by RFC 4180, which ends every one with CRLF. */
function records(text: string): string[][] {
  const found: string[][] = [];
  let rest = text;
  while (rest !== "") {
    const record: string[] = [];
    for (;;) {
      const match = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(rest);
      if (!match) throw new Error(`not RFC 4180 at ${JSON.stringify(rest.slice(0, 40))}`);
      record.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
      rest = rest.slice(match[0].length);
      if (match[3] === "\r\n") break;
    }
    found.push(record);
  }
  return found;
}

const shown = (column: string) => (record: string[]) =>
  record[COLUMNS.indexOf(column as (typeof COLUMNS)[number])];

describe("the log as CSV", () => {
  beforeEach(() => vi.mocked(call).mockReset());

  test("it is UTF-8 with a byte order mark, and RFC 4180", async () => {
    const bytes = await file();
    expect([...bytes.slice(0, 3)]).toEqual([0xef, 0xbb, 0xbf]);
    // The decoder takes the mark away, as Excel, LibreOffice and pandas do.
    const [head, ...rows] = records(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    expect(head).toEqual([...COLUMNS]);
    expect(rows.every((record) => record.length === COLUMNS.length)).toBe(true);
    expect(rows.map(shown("userName"))).toEqual(TEXTS.map(([, text]) => text));
    expect(rows.map(shown("errorMessage"))).toEqual(TEXTS.map(([, text]) => text));
    expect(rows.map(shown("costUsd"))).toEqual(TEXTS.map(() => "-0.5"));
  });

  const hasPython = spawnSync("python3", ["--version"]).status === 0;
  test.skipIf(!hasPython)("Python reads it back", async () => {
    const script = `import csv, io, json, sys
text = sys.stdin.buffer.read().decode("utf-8-sig")
print(json.dumps(list(csv.DictReader(io.StringIO(text, newline=""), strict=True))))`;
    const read = spawnSync("python3", ["-c", script], { input: Buffer.from(await file()) });
    expect(read.stderr.toString()).toBe("");
    const rows: Record<string, string>[] = JSON.parse(read.stdout.toString());
    expect(rows.map((record) => record.userName)).toEqual(TEXTS.map(([, text]) => text));
    expect(rows[0]).toMatchObject({ model: "m", statusCode: "200", costUsd: "-0.5", attempts: "" });
  });

  test("numbers and flags are as they are", () => {
    expect([cell(-1.5), cell(true), cell(null), cell(undefined)]).toEqual(["-1.5", "true", "", ""]);
  });
});
