import { QueryClient } from "@tanstack/react-query";
import { act, screen } from "@testing-library/react";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { type Arrived, Live, type LogEntry } from "@/api/live";
import { renderPart } from "@/test-page";
import { LiveProvider } from "./live";
import { merged, type RequestPage, useRequestList } from "./request-list";

/** A request that began in this second. */
const entry = (second: number): LogEntry =>
  ({
    requestId: `r${second}`,
    createdAt: new Date(second * 1000).toISOString(),
  }) as LogEntry;
const arrived = (second: number, receivedAt = second * 1000): Arrived => ({
  number: second,
  receivedAt,
  entry: entry(second),
});
const page = (seconds: number[], readAt: number, nextCursor?: string): RequestPage => ({
  logs: seconds.map(entry),
  readAt: readAt * 1000,
  nextCursor,
});
const ids = (entries: LogEntry[]) => entries.map(({ requestId }) => requestId);

describe("rows that were read, and requests that ended since", () => {
  test("each request is listed once, in the order of the read", () => {
    const { rows, fresh } = merged([arrived(104), arrived(102)], [page([103, 102, 101], 103)]);
    expect(ids(rows)).toEqual(["r104", "r103", "r102", "r101"]);
    expect(ids(fresh)).toEqual(["r104"]);
  });

  test("a long request that ends later takes the place of its begin", () => {
    const { rows, fresh } = merged([arrived(102, 110_000)], [page([103, 101], 109)]);
    expect(ids(rows)).toEqual(["r103", "r102", "r101"]);
    expect(ids(fresh)).toEqual(["r102"]);
  });

  test("what the log has had time to get is not counted beside its sums", () => {
    const { rows, fresh } = merged([arrived(150), arrived(101)], [page([149, 148], 149, "more")]);
    expect(ids(rows)).toEqual(["r150", "r149", "r148"]);
    expect(ids(fresh)).toEqual(["r150"]);
    // All pages were read, and it is in none: it was removed.
    expect(merged([arrived(101)], [page([149], 149)]).fresh).toEqual([]);
  });

  test("a request of a page that was not read yet has its place there", () => {
    const late = arrived(100, 148_000);
    expect(merged([late], [page([149, 148], 149, "more")]).fresh).toEqual([]);
    expect(ids(merged([late], [page([149, 148], 149)]).rows)).toEqual(["r149", "r148", "r100"]);
  });

  test("before the first read there are those of the stream", () => {
    expect(ids(merged([arrived(2), arrived(1)], []).rows)).toEqual(["r2", "r1"]);
  });
});

let list: ReturnType<typeof useRequestList>;
const everything = () => true;
function List({ pages, paused }: { pages?: RequestPage[]; paused: boolean }) {
  list = useRequestList(pages, everything, paused);
  return <p>{ids(list.rows).join(" ")}</p>;
}

describe("a list on a page", () => {
  let live: Live;
  beforeEach(() => {
    vi.stubGlobal("EventSource", undefined);
    live = new Live(new QueryClient());
  });
  const send = (second: number) =>
    act(() => {
      // The stream's own handler.
      (live as unknown as { acts: Map<string, (data: unknown) => void> }).acts.get("log")?.(
        entry(second),
      );
    });
  const shown = (pages: RequestPage[] | undefined, paused: boolean) =>
    renderPart(
      <LiveProvider live={live}>
        <List pages={pages} paused={paused} />
      </LiveProvider>,
    );

  test("a paused list stands still and counts, until it is told to show", async () => {
    const now = Date.now() / 1000;
    await shown([page([5], now)], true);
    send(6);
    send(7);
    expect(screen.getByText("r5")).toBeTruthy();
    expect(list.waiting).toBe(2);
    let isIncomplete = true;
    act(() => {
      isIncomplete = list.show();
    });
    expect(isIncomplete).toBe(false);
    expect(screen.getByText("r7 r6 r5")).toBeTruthy();
    expect(list.waiting).toBe(0);
    send(8);
    expect(list.waiting).toBe(1);
  });

  test("a list is read again when many requests ended since it was read", async () => {
    const readLog = vi.spyOn(live, "readLog").mockReturnValue();
    await shown([page([5], Date.now() / 1000 - 1)], false);
    for (let second = 100; second < 600; second++) send(second);
    expect(readLog).not.toHaveBeenCalled();
    send(600);
    expect(readLog).toHaveBeenCalledOnce();
  });
});
