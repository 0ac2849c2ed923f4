/** Error rules in the order of their checks. */
import { useQuery } from "@tanstack/react-query";
import { ListChecks } from "lucide-react";
import { useCallback, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Tag } from "@/ui/status";
import type { Column } from "@/ui/table";
import { Time } from "@/ui/text";
import { errorRules, type Rule, type RuleFields, useUpdateRule } from "./api";
import { Pattern, useCategory, useMatchType } from "./cells";
import { Enabled, RuleList } from "./list";
import { RemovedRules } from "./removed";
import { RuleForm } from "./rule-form";

interface Props {
  /** The initial values of a new rule; `null`: no new rule. */
  adding: Partial<RuleFields> | null;
  onAdd: () => void;
  onAdded: () => void;
}

export function ErrorRules({ adding, ...add }: Props) {
  const category = useCategory();
  const text = useCallback(
    (rule: Rule) =>
      `${rule.pattern} ${rule.description} ${rule.category} ${category(rule.category)}`,
    [category],
  );
  return (
    <>
      <RuleList
        {...add}
        adding={adding !== null}
        of="errors"
        asked={useQuery(errorRules)}
        text={text}
        columns={useColumns()}
        icon={<ListChecks className="size-6" aria-hidden />}
        form={(rule, close) => (
          <RuleForm key={rule?.id ?? "new"} rule={rule} draft={adding ?? {}} onClose={close} />
        )}
      />
      <RemovedRules />
    </>
  );
}

function useColumns(): Column<Rule>[] {
  const { t } = useTranslation();
  const matchType = useMatchType();
  const category = useCategory();
  return useMemo(
    () => [
      {
        id: "pattern",
        header: t("rules.pattern"),
        value: (rule) => rule.pattern.toLowerCase(),
        className: "max-w-56 sm:max-w-80",
        cell: (rule) => <Pattern text={rule.pattern} />,
      },
      {
        id: "priority",
        header: t("rules.errors.priority"),
        align: "right",
        value: (rule) => rule.priority,
        cell: (rule) => rule.priority,
      },
      {
        id: "enabled",
        header: t("rules.enabled"),
        value: (rule) => (rule.isEnabled ? 0 : 1),
        cell: (rule) => <EnabledRule rule={rule} />,
      },
      {
        id: "match",
        header: t("rules.match"),
        value: (rule) => rule.matchType,
        cell: (rule) => <Tag>{matchType(rule.matchType)}</Tag>,
      },
      {
        id: "category",
        header: t("rules.errors.category"),
        value: (rule) => category(rule.category),
        cell: (rule) => <span className="whitespace-nowrap">{category(rule.category)}</span>,
      },
      {
        id: "answer",
        header: t("rules.errors.told"),
        className: "max-w-72",
        cell: (rule) => <Told rule={rule} />,
      },
      {
        id: "origin",
        header: t("rules.errors.origin"),
        value: (rule) => (rule.isDefault ? 1 : 0),
        cell: (rule) => (
          <Tag title={rule.isEdited ? t("rules.errors.editedHelp") : undefined}>
            {!rule.isDefault
              ? t("rules.errors.own")
              : rule.isEdited
                ? t("rules.errors.edited")
                : t("rules.errors.shipped")}
          </Tag>
        ),
      },
      {
        id: "description",
        header: t("rules.description"),
        className: "max-w-80",
        hidden: true,
        cell: (rule) => <span className="block truncate">{rule.description}</span>,
      },
      {
        id: "updated",
        header: t("rules.updated"),
        hidden: true,
        value: (rule) => rule.updatedAt,
        cell: (rule) => <Time at={rule.updatedAt} />,
      },
    ],
    [t, matchType, category],
  );
}

/** The message that the client gets instead of the upstream's. */
function Told({ rule }: { rule: Rule }) {
  const { t } = useTranslation();
  if (rule.overrideResponse === null && rule.overrideStatusCode === null) {
    return <span className="text-quiet">{t("rules.errors.asUpstream")}</span>;
  }
  return (
    <span className="flex items-center gap-1.5">
      {rule.overrideStatusCode !== null && (
        <span className="tabular font-medium">{rule.overrideStatusCode}</span>
      )}
      <span className="truncate" title={rule.overrideResponse ?? undefined}>
        {rule.overrideResponse ?? <span className="text-faint">{t("rules.errors.sameWords")}</span>}
      </span>
    </span>
  );
}

function EnabledRule({ rule }: { rule: Rule }) {
  const update = useUpdateRule();
  const change = (isEnabled: boolean) => update.mutateAsync({ id: rule.id, isEnabled });
  return <Enabled name={rule.pattern} isEnabled={rule.isEnabled} change={change} />;
}
