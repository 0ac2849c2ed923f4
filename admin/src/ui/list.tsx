/**
 * A page that is a list: with search, filters, and one open entry. If it could not be read, is
 * empty, or has no match, it says what to do next. The table itself is `table.tsx`.
 */
import type { ReactNode } from "react";
import { Button } from "./button";
import { Empty, Failed } from "./empty";
import { SearchBox } from "./search";
import { DataTable, type TableProps } from "./table";

interface Props<T> extends Omit<TableProps<T>, "loading" | "empty" | "full"> {
  asked: { data: unknown; error: unknown; isPending: boolean; refetch: () => unknown };
  search: {
    label: string;
    value: string | undefined;
    onChange: (value: string | undefined) => void;
  };
  /** Shown before the search. */
  lead?: ReactNode;
  /** The message if the filters have no match; `undefined` if nothing is filtered. */
  none: { title: string; action: string; clear: () => void } | undefined;
  /** The message if there are no entries, with the next step. */
  first: ReactNode;
}

export function List<T>({ asked, search, lead, none, first, toolbar, ...table }: Props<T>) {
  if (asked.error && asked.data === undefined)
    return <Failed error={asked.error} retry={() => void asked.refetch()} />;
  return (
    <DataTable
      {...table}
      full
      loading={asked.isPending}
      toolbar={
        <>
          {lead}
          <SearchBox
            label={search.label}
            value={search.value ?? ""}
            onChange={(text) => search.onChange(text || undefined)}
          />
          {toolbar}
        </>
      }
      empty={
        none ? (
          <Empty title={none.title} action={<Button onClick={none.clear}>{none.action}</Button>} />
        ) : (
          first
        )
      }
    />
  );
}
