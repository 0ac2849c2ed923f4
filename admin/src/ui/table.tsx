/**
 * The table of all lists: sticky header and first column, selectable columns, two densities,
 * sorting, arrow keys and Enter, checkboxes for batches, and totals at its foot. The caller has the
 * filters (`filters.tsx`). The rows are in `grid.tsx`.
 */
import {
  type ColumnDef,
  getCoreRowModel,
  getSortedRowModel,
  type SortingState,
  useReactTable,
} from "@tanstack/react-table";
import { Columns3, Rows2, Rows4 } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "./button";
import { cx } from "./cx";
import { Loading } from "./empty";
import { type Column, Grid, type GridProps } from "./grid";
import { TickMenu } from "./menu";
import { useStored } from "./stored";

export type { Column } from "./grid";

export interface TableProps<T>
  extends Omit<GridProps<T>, "sorted" | "dense" | "sorting" | "onSort"> {
  /** The name under which the choices are stored. */
  id: string;
  rows: T[];
  rowId: (row: T) => string;
  loading?: boolean;
  empty?: ReactNode;
  /** Shown beside the column chooser. */
  toolbar?: ReactNode;
  sort?: SortingState;
}

export function DataTable<T>(props: TableProps<T>) {
  const { id, columns, rows, rowId, full, toolbar, loading, empty } = props;
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
        <Look
          columns={columns}
          visible={visible}
          onShow={(column, on) => setShown({ ...shown, [column]: on })}
          dense={dense}
          onDense={setDense}
        />
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
        />
      )}
    </div>
  );
}

interface LookProps<T> {
  columns: Column<T>[];
  visible: Column<T>[];
  onShow: (column: string, on: boolean) => void;
  dense: boolean;
  onDense: (dense: boolean) => void;
}

/** How the table looks: its density, and which columns are shown. */
function Look<T>({ columns, visible, onShow, dense, onDense }: LookProps<T>) {
  const { t } = useTranslation();
  const Rows = dense ? Rows4 : Rows2;
  return (
    <div className="flex items-center">
      <IconButton
        size="sm"
        label={dense ? t("ui.comfortable") : t("ui.dense")}
        icon={<Rows className="size-4" aria-hidden />}
        onClick={() => onDense(!dense)}
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
        onTick={onShow}
      />
    </div>
  );
}
