/** Sensitive words: the list, and what of it this node has in force. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { RotateCw, ShieldAlert } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Switch } from "@/ui/field";
import { SearchBox } from "@/ui/search";
import { Tag } from "@/ui/status";
import { type Column, DataTable } from "@/ui/table";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { useRefreshWords, useUpdateWord, type Word, wordStats, words } from "./api";
import { Pattern, useMatchType } from "./cells";
import { WordForm } from "./word-form";

interface Props {
  adding: boolean;
  onAdd: () => void;
  onAdded: () => void;
}

export function Words({ adding, onAdd, onAdded }: Props) {
  const { t } = useTranslation();
  const { q, id } = useSearch({ from: "/shell/rules" });
  const navigate = useNavigate({ from: "/rules" });
  const set = (change: { q?: string; id?: number }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const { data, error, isPending, refetch } = useQuery(words);
  const columns = useColumns();
  const rows = useMemo(() => {
    const sought = (q ?? "").toLowerCase();
    return (data ?? []).filter((word) => `${word.word} ${word.description}`.toLowerCase().includes(sought));
  }, [data, q]);
  const open = data?.find((word) => word.id === id);
  if (error) return <Failed error={error} retry={() => void refetch()} />;
  return (
    <>
      <p className="mb-3 max-w-3xl text-sm text-quiet">{t("rules.words.help")}</p>
      <DataTable
        id="words"
        label={t("rules.words.title")}
        full
        loading={isPending}
        rows={rows}
        rowId={(word) => String(word.id)}
        columns={columns}
        dim={(word) => !word.isEnabled}
        onOpen={(word) => set({ id: word.id })}
        openId={id === undefined ? null : String(id)}
        toolbar={
          <>
            <SearchBox
              label={t("rules.words.search")}
              value={q ?? ""}
              onChange={(text) => set({ q: text || undefined })}
            />
            <InForce />
          </>
        }
        empty={
          q !== undefined ? (
            <Empty
              title={t("rules.none")}
              action={<Button onClick={() => set({ q: undefined })}>{t("rules.showAll")}</Button>}
            />
          ) : (
            <Empty
              icon={<ShieldAlert className="size-6" aria-hidden />}
              title={t("rules.words.empty")}
              action={
                <Button variant="primary" onClick={onAdd}>
                  {t("rules.words.add")}
                </Button>
              }
            >
              {t("rules.words.emptyHelp")}
            </Empty>
          )
        }
      />
      {(adding || open) && (
        <WordForm
          key={open?.id ?? "new"}
          word={adding ? null : (open ?? null)}
          onClose={() => {
            onAdded();
            set({ id: undefined });
          }}
        />
      )}
    </>
  );
}

function useColumns(): Column<Word>[] {
  const { t } = useTranslation();
  const matchType = useMatchType();
  return useMemo(
    () => [
      {
        id: "word",
        header: t("rules.words.word"),
        value: (word) => word.word.toLowerCase(),
        className: "max-w-56 sm:max-w-96",
        cell: (word) => <Pattern text={word.word} />,
      },
      {
        id: "enabled",
        header: t("rules.enabled"),
        value: (word) => (word.isEnabled ? 0 : 1),
        cell: (word) => <Enabled word={word} />,
      },
      {
        id: "match",
        header: t("rules.match"),
        value: (word) => word.matchType,
        cell: (word) => <Tag>{matchType(word.matchType)}</Tag>,
      },
      {
        id: "description",
        header: t("rules.description"),
        value: (word) => word.description,
        className: "max-w-80",
        cell: (word) => <span className="block truncate">{word.description}</span>,
      },
      {
        id: "updated",
        header: t("rules.updated"),
        value: (word) => word.updatedAt,
        cell: (word) => <Time at={word.updatedAt} />,
      },
      {
        id: "created",
        header: t("rules.created"),
        hidden: true,
        value: (word) => word.createdAt,
        cell: (word) => <Time at={word.createdAt} />,
      },
    ],
    [t, matchType],
  );
}

function Enabled({ word }: { word: Word }) {
  const { t } = useTranslation();
  const toast = useToast();
  const update = useUpdateWord();
  return (
    <Switch
      label={t("rules.enableOne", { name: word.word })}
      hideLabel
      checked={update.isPending ? (update.variables.isEnabled ?? word.isEnabled) : word.isEnabled}
      disabled={update.isPending}
      onChange={(event) =>
        update.mutate(
          { id: word.id, isEnabled: event.target.checked },
          { onError: (error) => toast.bad(error.message || t("ui.noConnection")) },
        )
      }
    />
  );
}

/** How many words the gateway looks for, and since when. */
function InForce() {
  const { t } = useTranslation();
  const toast = useToast();
  const { data } = useQuery(wordStats);
  const refresh = useRefreshWords();
  if (!data) return null;
  return (
    <span className="inline-flex items-center gap-1 text-xs text-faint">
      <span>
        {t("rules.words.inForce", {
          contains: data.containsCount,
          exact: data.exactCount,
          regex: data.regexCount,
        })}{" "}
        <Time at={data.lastReloadTime} />
      </span>
      <IconButton
        size="sm"
        label={t("rules.words.refresh")}
        busy={refresh.isPending}
        icon={<RotateCw className="size-3.5" aria-hidden />}
        onClick={() =>
          refresh.mutate(
            {},
            {
              onSuccess: () => toast.good(t("rules.words.refreshed")),
              onError: (error) => toast.bad(error.message || t("ui.noConnection")),
            },
          )
        }
      />
    </span>
  );
}
