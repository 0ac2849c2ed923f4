/** The grid of a table: header, the visible rows, foot; the keyboard, and the picked rows. */
import type { Row, SortingState } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useRef,
  useState,
} from "react";
import { useTranslation } from "react-i18next";
import { cx } from "./cx";

export interface Column<T> {
  id: string;
  header: string;
  cell: (row: T) => ReactNode;
  /** Makes the column sortable. */
  value?: (row: T) => string | number | null | undefined;
  align?: "right";
  /** Hidden until the user selects it. */
  hidden?: boolean;
  footer?: ReactNode;
  /** Tailwind width classes for long texts. */
  className?: string;
}

export interface GridProps<T> {
  /** For screen readers. */
  label: string;
  columns: Column<T>[];
  sorted: Row<T>[];
  /** A row was opened (click or Enter). */
  onOpen?: (row: T) => void;
  openId?: string | null;
  /** The end is near: load more. */
  onEnd?: () => void;
  more?: boolean;
  /** More are loading, or could not be loaded: only scrolling asks again. */
  waits?: boolean;
  picked?: ReadonlySet<string>;
  onPick?: (picked: Set<string>) => void;
  /** `full`: fills the available height and scrolls inside. */
  full?: boolean;
  /** Whether a row is grey. */
  dim?: (row: T) => boolean;
  dense: boolean;
  sorting: SortingState;
  onSort: (column: string) => void;
}

const VIRTUAL_FROM = 60;
const STICKY =
  "sticky left-0 z-10 bg-surface group-hover:bg-hover group-data-[open=true]:bg-accent-soft";

export function Grid<T>(props: GridProps<T>) {
  const { label, columns, sorted, onOpen, openId, picked, onPick, full, dense } = props;
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const { from, to, height, onScroll, reveal } = useVisible(box, props);
  const focus = (index: number) => {
    const next = Math.max(0, Math.min(sorted.length - 1, index));
    setActive(next);
    reveal(next);
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus(),
    );
    const row = sorted[next];
    if (row && openId != null) onOpen?.(row.original);
  };
  const pick = (rowId: string) => {
    const next = new Set(picked);
    if (!next.delete(rowId)) next.add(rowId);
    onPick?.(next);
  };
  const onKeyDown = (event: KeyboardEvent, index: number, row: Row<T>) => {
    if (event.target !== event.currentTarget) return;
    const moves: Record<string, number> = {
      ArrowDown: index + 1,
      ArrowUp: index - 1,
      Home: 0,
      End: sorted.length - 1,
    };
    const move = moves[event.key];
    if (move !== undefined) {
      event.preventDefault();
      focus(move);
    } else if (event.key === "Enter") {
      onOpen?.(row.original);
    } else if (event.key === " " && onPick) {
      event.preventDefault();
      pick(row.id);
    }
  };
  const span = columns.length + (onPick ? 1 : 0);
  const isInOrder = (index: number) =>
    index === Math.min(active, sorted.length - 1) ||
    (index === from && (active < from || active >= to));
  return (
    <div
      ref={box}
      className={cx("card relative overflow-auto", full && "min-h-48 flex-1")}
      onScroll={onScroll}
    >
      <table aria-label={label} className="w-full border-separate border-spacing-0">
        <Head {...props} />
        <tbody>
          <Spacer height={from * height} span={span} />
          {sorted.slice(from, to).map((row, offset) => {
            const index = from + offset;
            const open = openId != null && openId === row.id;
            return (
              <tr
                key={row.id}
                data-row={index}
                data-open={open}
                aria-current={open || undefined}
                tabIndex={isInOrder(index) ? 0 : -1}
                onFocus={(event) => event.target === event.currentTarget && setActive(index)}
                onKeyDown={(event) => onKeyDown(event, index, row)}
                onClick={(event) => {
                  if (!isOnControl(event)) onOpen?.(row.original);
                }}
                className={cx(
                  "group outline-offset-[-2px]",
                  onOpen && "cursor-pointer",
                  open ? "bg-accent-soft" : "hover:bg-hover",
                  props.dim?.(row.original) && "text-faint",
                )}
              >
                <Cells
                  row={row}
                  columns={columns}
                  dense={dense}
                  picked={picked?.has(row.id) ?? false}
                  onPick={onPick && (() => pick(row.id))}
                />
              </tr>
            );
          })}
          <Spacer height={(sorted.length - to) * height} span={span} />
        </tbody>
        <Foot columns={columns} picks={onPick !== undefined} />
      </table>
    </div>
  );
}

/** A click that is for a control in the row, or that selects text. */
function isOnControl({ target }: MouseEvent): boolean {
  const inner = (target as HTMLElement).closest("a,button,input,select,label,[role=menuitem]");
  return inner !== null || Boolean(getSelection()?.toString());
}

/** The rows that are in the page, and the request for more when the end is near. */
function useVisible<T>(box: RefObject<HTMLDivElement | null>, props: GridProps<T>) {
  const { sorted, dense, onEnd, more, waits } = props;
  const height = dense ? 34 : 44;
  const virtual = sorted.length > VIRTUAL_FROM;
  const virtualizer = useVirtualizer({
    count: virtual ? sorted.length : 0,
    getScrollElement: () => box.current,
    estimateSize: () => height,
    overscan: 12,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the density changes every row's height
  useEffect(() => virtualizer.measure(), [height]);
  const items = virtualizer.getVirtualItems();
  const from = virtual ? (items[0]?.index ?? 0) : 0;
  const to = virtual ? (items.at(-1)?.index ?? -1) + 1 : sorted.length;
  const near = to >= sorted.length - 5;
  const isNearEnd = () => {
    const at = box.current;
    if (virtual) return near;
    return at !== null && at.scrollTop + at.clientHeight > at.scrollHeight - 200;
  };
  // The rows may leave a part of a tall window free, so that there is nothing to scroll.
  // biome-ignore lint/correctness/useExhaustiveDependencies: asks once for each length
  useEffect(() => {
    if (more && !waits && isNearEnd()) onEnd?.();
  }, [near, more, waits, sorted.length]);
  return {
    from,
    to,
    height,
    onScroll: () => {
      if (more && isNearEnd()) onEnd?.();
    },
    reveal: (index: number) => {
      if (virtual) virtualizer.scrollToIndex(index);
    },
  };
}

function Head<T>({ columns, sorted, picked, onPick, sorting, onSort }: GridProps<T>) {
  const { t } = useTranslation();
  const allPicked = sorted.length > 0 && sorted.every((row) => picked?.has(row.id));
  return (
    <thead>
      <tr>
        {onPick && (
          <th className="sticky top-0 left-0 z-30 w-9 border-b bg-sunken px-3">
            <Pick
              label={t("ui.pickAll")}
              picked={allPicked}
              onPick={() => onPick(allPicked ? new Set() : new Set(sorted.map((row) => row.id)))}
            />
          </th>
        )}
        {columns.map((column, index) => {
          const order = sorting.find((one) => one.id === column.id);
          const Arrow = order?.desc ? ArrowDown : ArrowUp;
          return (
            <th
              key={column.id}
              scope="col"
              aria-sort={order ? (order.desc ? "descending" : "ascending") : undefined}
              className={cx(
                "sticky top-0 z-20 h-8 border-b bg-sunken px-3",
                "text-xs font-medium whitespace-nowrap text-quiet",
                column.align === "right" ? "text-right" : "text-left",
                index === 0 && (onPick ? "!z-30 sm:left-10" : "left-0 !z-30"),
              )}
            >
              {column.value ? (
                <button
                  type="button"
                  className="inline-flex items-center gap-1 hover:text-ink"
                  onClick={() => onSort(column.id)}
                >
                  {column.header}
                  {order && <Arrow className="size-3" aria-hidden />}
                </button>
              ) : (
                column.header
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

interface CellsProps<T> {
  row: Row<T>;
  columns: Column<T>[];
  dense: boolean;
  picked: boolean;
  onPick: (() => void) | undefined;
}

function Cells<T>({ row, columns, dense, picked, onPick }: CellsProps<T>) {
  const { t } = useTranslation();
  const pad = cx("px-3 whitespace-nowrap", dense ? "h-[34px] text-xs" : "h-11 text-sm");
  return (
    <>
      {onPick && (
        <td className={cx(pad, "w-9 border-b", STICKY)}>
          <Pick label={t("ui.pick")} picked={picked} onPick={onPick} />
        </td>
      )}
      {columns.map((column, at) => (
        <td
          key={column.id}
          className={cx(
            pad,
            "border-b",
            column.align === "right" && "tabular text-right",
            at === 0 && (onPick ? cx(STICKY, "sm:left-10 max-sm:static") : STICKY),
            column.className,
          )}
        >
          {column.cell(row.original)}
        </td>
      ))}
    </>
  );
}

function Pick(props: { label: string; picked: boolean; onPick: () => void }) {
  return (
    <input
      type="checkbox"
      aria-label={props.label}
      className="size-4 accent-accent align-middle"
      checked={props.picked}
      onChange={props.onPick}
    />
  );
}

function Foot<T>({ columns, picks }: { columns: Column<T>[]; picks: boolean }) {
  if (columns.every((column) => column.footer === undefined)) return null;
  return (
    <tfoot>
      <tr>
        {picks && <td className="sticky bottom-0 border-t bg-sunken" />}
        {columns.map((column) => (
          <td
            key={column.id}
            className={cx(
              "tabular sticky bottom-0 z-10 h-8 border-t bg-sunken",
              "px-3 text-xs font-medium whitespace-nowrap",
              column.align === "right" && "text-right",
            )}
          >
            {column.footer}
          </td>
        ))}
      </tr>
    </tfoot>
  );
}

function Spacer({ height, span }: { height: number; span: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden>
      <td colSpan={span} style={{ height }} />
    </tr>
  );
}
