/** Sensitive words: the list, and the state of the word list on this node. */
import { useQuery } from "@tanstack/react-query";
import { RotateCw, ShieldAlert } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/ui/button";
import { Tag } from "@/ui/status";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { useRefreshWords, useUpdateWord, type Word, wordStats, words } from "./api";
import { Pattern, useMatchType } from "./cells";
import { Enabled, RuleList } from "./list";
import { WordForm } from "./word-form";

interface Props {
  adding: boolean;
  onAdd: () => void;
  onAdded: () => void;
}

const textOf = (word: Word) => `${word.word} ${word.description}`;

export function Words(props: Props) {
  return (
    <RuleList
      {...props}
      of="words"
      asked={useQuery(words)}
      text={textOf}
      columns={useColumns()}
      icon={<ShieldAlert className="size-6" aria-hidden />}
      toolbar={<InForce />}
      form={(word, close) => <WordForm key={word?.id ?? "new"} word={word} onClose={close} />}
    />
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
        cell: (word) => <EnabledWord word={word} />,
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

function EnabledWord({ word }: { word: Word }) {
  const update = useUpdateWord();
  const change = (isEnabled: boolean) => update.mutateAsync({ id: word.id, isEnabled });
  return <Enabled name={word.word} isEnabled={word.isEnabled} change={change} />;
}

/** The number of words that the gateway uses, and since when. */
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
              onError: toast.failed,
            },
          )
        }
      />
    </span>
  );
}
