/**
 * The table of all lists: sticky header and first column, selectable columns, two densities,
 * sorting, arrow keys and Enter, checkboxes for batches, and totals at its foot. Only the visible
 * rows are in the page. The caller has the filters (`filters.tsx`).
 */
import {
  type ColumnDef,
  getCoreRowModel,
  getSortedRowModel,
  type Row,
  type SortingState,
  useReactTable,
} from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp, Columns3, Rows2, Rows4 } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./button";
import { cx } from "./cx";
import { Loading } from "./empty";
import { TickMenu } from "./menu";
import { useStored } from "./stored";

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

export interface TableProps<T> {
  /** The name under which the choices are stored. */
  id: string;
  /** For screen readers. */
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowId: (row: T) => string;
  /** A row was opened (click or Enter). */
  onOpen?: (row: T) => void;
  openId?: string | null;
  loading?: boolean;
  empty?: ReactNode;
  /** The end is near: load more. */
  onEnd?: () => void;
  more?: boolean;
  /** More are loading, or could not be loaded: only scrolling asks again. */
  waits?: boolean;
  picked?: ReadonlySet<string>;
  onPick?: (picked: Set<string>) => void;
  /** Shown beside the column chooser. */
  toolbar?: ReactNode;
  /** `full`: fills the available height and scrolls inside. */
  full?: boolean;
  /** Whether a row is grey. */
  dim?: (row: T) => boolean;
  sort?: SortingState;
}

const VIRTUAL_FROM = 60;

export function DataTable<T>(props: TableProps<T>) {
  const { id, columns, rows, rowId, full, picked, onPick, toolbar, loading, empty } = props;
  const { t } = useTranslation();
  const [shown, setShown] = useStored<Record<string, boolean>>(`columns.${id}`, {});
  const [dense, setDense] = useStored("dense", true);
  const [sorting, setSorting] = useState<SortingState>(props.sort ?? []);
  const visible = columns.filter(
    (column, index) => index === 0 || (shown[column.id] ?? !column.hidden),
  );
  const definitions = useMemo<ColumnDef<T>[]>(
    () =>
      columns.map((column) => ({
        id: column.id,
        accessorFn: (row: T) => column.value?.(row) ?? undefined,
        enableSorting: column.value !== undefined,
        sortUndefined: "last" as const,
      })),
    [columns],
  );
  const table = useReactTable({
    data: rows,
    columns: definitions,
    state: { sorting },
    onSortingChange: setSorting,
    getCoreRowModel: getCoreRowModel(),
    getSortedRowModel: getSortedRowModel(),
    getRowId: rowId,
  });
  const sorted = table.getRowModel().rows;
  return (
    <div className={cx("flex min-w-0 flex-col", full && "min-h-0 flex-1")}>
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2">{toolbar}</div>
        <div className="flex items-center">
          <IconButton
            size="sm"
            label={dense ? t("ui.comfortable") : t("ui.dense")}
            icon={
              dense ? (
                <Rows4 className="size-4" aria-hidden />
              ) : (
                <Rows2 className="size-4" aria-hidden />
              )
            }
            onClick={() => setDense(!dense)}
          />
          <TickMenu
            title={t("ui.columns")}
            trigger={
              <IconButton
                size="sm"
                label={t("ui.columns")}
                icon={<Columns3 className="size-4" aria-hidden />}
              />
            }
            ticks={columns.map((column, index) => ({
              id: column.id,
              label: column.header,
              checked: visible.includes(column),
              disabled: index === 0,
            }))}
            onTick={(column, on) => setShown({ ...shown, [column]: on })}
          />
        </div>
      </div>
      {loading ? (
        <Loading />
      ) : rows.length === 0 && empty !== undefined ? (
        <div className="card">{empty}</div>
      ) : (
        <Grid
          {...props}
          columns={visible}
          sorted={sorted}
          dense={dense}
          sorting={sorting}
          onSort={(column) => table.getColumn(column)?.toggleSorting()}
          picked={picked}
          onPick={onPick}
        />
      )}
    </div>
  );
}

interface GridProps<T> extends TableProps<T> {
  sorted: Row<T>[];
  dense: boolean;
  sorting: SortingState;
  onSort: (column: string) => void;
}

function Grid<T>({
  label,
  columns,
  sorted,
  onOpen,
  openId,
  onEnd,
  more,
  waits,
  picked,
  onPick,
  full,
  dim,
  dense,
  sorting,
  onSort,
}: GridProps<T>) {
  const { t } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
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
    return at !== null && at.scrollTop + at.clientHeight > at.scrollHeight - 200;
  };
  // The rows may leave a part of a tall window free, so that there is nothing to scroll.
  // biome-ignore lint/correctness/useExhaustiveDependencies: asks once for each length
  useEffect(() => {
    if (more && !waits && (virtual ? near : isNearEnd())) onEnd?.();
  }, [near, more, waits, sorted.length]);

  const focus = (index: number) => {
    const next = Math.max(0, Math.min(sorted.length - 1, index));
    setActive(next);
    if (virtual) virtualizer.scrollToIndex(next);
    requestAnimationFrame(() =>
      box.current?.querySelector<HTMLElement>(`[data-row="${next}"]`)?.focus(),
    );
    const row = sorted[next];
    if (row && openId != null) onOpen?.(row.original);
  };
  const onKeyDown = (event: KeyboardEvent, index: number, row: T) => {
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
      onOpen?.(row);
    } else if (event.key === " " && onPick) {
      event.preventDefault();
      pick(sorted[index]?.id ?? "");
    }
  };
  const pick = (rowId: string) => {
    const next = new Set(picked);
    if (!next.delete(rowId)) next.add(rowId);
    onPick?.(next);
  };
  const allPicked = sorted.length > 0 && sorted.every((row) => picked?.has(row.id));
  const span = columns.length + (onPick ? 1 : 0);
  const sticky =
    "sticky left-0 z-10 bg-surface group-hover:bg-hover group-data-[open=true]:bg-accent-soft";
  const pad = cx("px-3 whitespace-nowrap", dense ? "h-[34px] text-xs" : "h-11 text-sm");
  const hasFooter = columns.some((column) => column.footer !== undefined);
  return (
    <div
      ref={box}
      className={cx("card relative overflow-auto", full && "min-h-48 flex-1")}
      onScroll={() => {
        if (more && (virtual ? near : isNearEnd())) onEnd?.();
      }}
    >
      <table aria-label={label} className="w-full border-separate border-spacing-0">
        <thead>
          <tr>
            {onPick && (
              <th className="sticky top-0 left-0 z-30 w-9 border-b bg-sunken px-3">
                <input
                  type="checkbox"
                  aria-label={t("ui.pickAll")}
                  className="size-4 accent-accent align-middle"
                  checked={allPicked}
                  onChange={() =>
                    onPick(allPicked ? new Set() : new Set(sorted.map((row) => row.id)))
                  }
                />
              </th>
            )}
            {columns.map((column, index) => {
              const order = sorting.find((one) => one.id === column.id);
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
                      {order &&
                        (order.desc ? (
                          <ArrowDown className="size-3" aria-hidden />
                        ) : (
                          <ArrowUp className="size-3" aria-hidden />
                        ))}
                    </button>
                  ) : (
                    column.header
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
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
                tabIndex={
                  index === Math.min(active, sorted.length - 1) ||
                  (index === from && (active < from || active >= to))
                    ? 0
                    : -1
                }
                onFocus={(event) => event.target === event.currentTarget && setActive(index)}
                onKeyDown={(event) => onKeyDown(event, index, row.original)}
                onClick={(event) => {
                  const inner = (event.target as HTMLElement).closest(
                    "a,button,input,select,label,[role=menuitem]",
                  );
                  if (!inner && !getSelection()?.toString()) onOpen?.(row.original);
                }}
                className={cx(
                  "group outline-offset-[-2px]",
                  onOpen && "cursor-pointer",
                  open ? "bg-accent-soft" : "hover:bg-hover",
                  dim?.(row.original) && "text-faint",
                )}
              >
                {onPick && (
                  <td className={cx(pad, "w-9 border-b", sticky)}>
                    <input
                      type="checkbox"
                      aria-label={t("ui.pick")}
                      className="size-4 accent-accent align-middle"
                      checked={picked?.has(row.id) ?? false}
                      onChange={() => pick(row.id)}
                    />
                  </td>
                )}
                {columns.map((column, at) => (
                  <td
                    key={column.id}
                    className={cx(
                      pad,
                      "border-b",
                      column.align === "right" && "tabular text-right",
                      at === 0 && (onPick ? cx(sticky, "sm:left-10 max-sm:static") : sticky),
                      column.className,
                    )}
                  >
                    {column.cell(row.original)}
                  </td>
                ))}
              </tr>
            );
          })}
          <Spacer height={(sorted.length - to) * height} span={span} />
        </tbody>
        {hasFooter && (
          <tfoot>
            <tr>
              {onPick && <td className="sticky bottom-0 border-t bg-sunken" />}
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
        )}
      </table>
    </div>
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
