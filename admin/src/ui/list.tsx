/**
 * A list that is the page: searched, filtered, one of it opened. It could not be read, it is empty,
 * or nothing fits: each says what to do next. The table itself is `table.tsx`.
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
  /** Before the search. */
  lead?: ReactNode;
  /** What is said when filters leave nothing; `undefined` where nothing is filtered. */
  none: { title: string; action: string; clear: () => void } | undefined;
  /** What is said when there is nothing at all, with the next step. */
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
