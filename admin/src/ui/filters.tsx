/** Filters as chips: each shows its value, opens to change it, and can be removed. */
import { Plus, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./button";
import { cx } from "./cx";
import { type Choice, Select } from "./field";
import { Menu } from "./menu";
import { Popover } from "./popover";

export interface Filter {
  id: string;
  label: string;
  /** The filter's value as text; `undefined` = not filtered by this. */
  shown: string | undefined;
  /** The control that changes it. `done` closes the box. */
  edit: (done: () => void) => ReactNode;
  clear: () => void;
}

/** A filter by one of a few values; `onChange` gets `undefined` for "any". */
export function choiceFilter<V extends string>({
  value,
  choices,
  any = "—",
  onChange,
  ...filter
}: Pick<Filter, "id" | "label"> & {
  value: V | undefined;
  choices: readonly (Choice & { value: V })[];
  any?: string;
  onChange: (value: V | undefined) => void;
}): Filter {
  return {
    ...filter,
    shown: value && (choices.find((one) => one.value === value)?.label ?? value),
    clear: () => onChange(undefined),
    edit: (done) => (
      <Select
        aria-label={filter.label}
        value={value ?? ""}
        choices={[{ value: "", label: any }, ...choices]}
        onChange={({ target }) => {
          onChange(choices.find((one) => one.value === target.value)?.value);
          done();
        }}
      />
    ),
  };
}

export function Filters({ filters }: { filters: Filter[] }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState<string | null>(null);
  const set = filters.filter((filter) => filter.shown !== undefined || filter.id === opened);
  const rest = filters.filter((filter) => !set.includes(filter));
  return (
    <>
      {set.map((filter) => (
        <span
          key={filter.id}
          className={cx(
            "inline-flex h-7 max-w-full items-center rounded-full",
            "border border-strong-line bg-surface text-xs",
          )}
        >
          <Popover
            label={filter.label}
            open={opened === filter.id}
            onOpenChange={(open) => setOpened(open ? filter.id : null)}
            trigger={
              <button
                type="button"
                className={cx(
                  "flex h-full min-w-0 items-center gap-1",
                  "rounded-l-full pr-1 pl-3 hover:bg-hover",
                )}
              >
                <span className="text-faint">{filter.label}</span>
                <span className="max-w-52 truncate font-medium">{filter.shown ?? "…"}</span>
              </button>
            }
          >
            <div className="mb-2 text-sm font-medium">{filter.label}</div>
            {filter.edit(() => setOpened(null))}
          </Popover>
          <button
            type="button"
            aria-label={t("ui.removeFilter", { name: filter.label })}
            className={cx(
              "flex h-full items-center rounded-r-full pr-2",
              "pl-1 text-faint hover:bg-hover hover:text-ink",
            )}
            onClick={() => {
              filter.clear();
              setOpened(null);
            }}
          >
            <X className="size-3.5" aria-hidden />
          </button>
        </span>
      ))}
      {rest.length > 0 && (
        <Menu
          trigger={
            <Button size="sm" variant="ghost" icon={<Plus className="size-3.5" aria-hidden />}>
              {t("ui.filter")}
            </Button>
          }
          actions={rest.map((filter) => ({
            label: filter.label,
            onSelect: () => setTimeout(() => setOpened(filter.id), 0),
          }))}
        />
      )}
    </>
  );
}
