/** The frame of both lists: purpose, table with search, and the form of the open or new entry. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { usePanelHistory } from "@/parts/panel-history";
import { Button } from "@/ui/button";
import { Empty } from "@/ui/empty";
import { Switch } from "@/ui/field";
import { List } from "@/ui/list";
import type { Column } from "@/ui/table";
import { useToast } from "@/ui/toast";

interface Entry {
  id: number;
  isEnabled: boolean;
}

interface Props<T extends Entry> {
  asked: UseQueryResult<T[]>;
  /** The texts by which an entry is found. */
  text: (entry: T) => string;
  columns: Column<T>[];
  /** The texts of the list: `rules.words` or `rules.errors`. */
  of: "words" | "errors";
  icon: ReactNode;
  toolbar?: ReactNode;
  adding: boolean;
  onAdd: () => void;
  onAdded: () => void;
  /** The form of an entry; for `null`, of a new one. */
  form: (entry: T | null, close: () => void) => ReactNode;
}

export function RuleList<T extends Entry>({
  asked,
  text,
  columns,
  of,
  icon,
  toolbar,
  form,
  ...add
}: Props<T>) {
  const { t } = useTranslation();
  const { q, id } = useSearch({ from: "/shell/rules" });
  const navigate = useNavigate({ from: "/rules" });
  const panel = usePanelHistory(id !== undefined);
  const set = (change: { q?: string; id?: number }, how: object = { replace: true }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), ...how });
  const { data } = asked;
  const rows = useMemo(() => {
    const sought = (q ?? "").toLowerCase();
    return (data ?? []).filter((entry) => text(entry).toLowerCase().includes(sought));
  }, [data, q, text]);
  const open = data?.find((entry) => entry.id === id);
  return (
    <>
      <p className="mb-3 max-w-3xl text-sm text-quiet">{t(`rules.${of}.help`)}</p>
      <List
        asked={asked}
        id={of === "words" ? "words" : "error-rules"}
        label={t(`rules.${of}.title`)}
        rows={rows}
        rowId={(entry) => String(entry.id)}
        columns={columns}
        dim={(entry) => !entry.isEnabled}
        onOpen={(entry) => set({ id: entry.id }, panel.opening())}
        openId={id === undefined ? null : String(id)}
        search={{
          label: t(`rules.${of}.search`),
          value: q,
          onChange: (typed) => set({ q: typed }),
        }}
        toolbar={toolbar}
        none={
          q === undefined
            ? undefined
            : {
                title: t("rules.none"),
                action: t("rules.showAll"),
                clear: () => set({ q: undefined }),
              }
        }
        first={
          <Empty
            icon={icon}
            title={t(`rules.${of}.empty`)}
            action={
              <Button variant="primary" onClick={add.onAdd}>
                {t(`rules.${of}.add`)}
              </Button>
            }
          >
            {t(`rules.${of}.emptyHelp`)}
          </Empty>
        }
      />
      {(add.adding || open) &&
        form(add.adding ? null : (open ?? null), () => {
          add.onAdded();
          panel.close(() => set({ id: undefined }));
        })}
    </>
  );
}

interface EnabledProps {
  name: string;
  isEnabled: boolean;
  change: (isEnabled: boolean) => Promise<unknown>;
}

/** Enables or disables an entry; takes effect at once. */
export function Enabled({ name, isEnabled, change }: EnabledProps) {
  const { t } = useTranslation();
  const toast = useToast();
  const [wanted, setWanted] = useState<boolean>();
  const set = async (on: boolean) => {
    setWanted(on);
    try {
      await change(on);
    } catch (error) {
      toast.failed(error);
    } finally {
      setWanted(undefined);
    }
  };
  return (
    <Switch
      label={t("rules.enableOne", { name })}
      hideLabel
      checked={wanted ?? isEnabled}
      disabled={wanted !== undefined}
      onChange={(event) => void set(event.target.checked)}
    />
  );
}
