/** Error rules in the order in which they are asked. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Empty, Failed } from "@/ui/empty";
import { Switch } from "@/ui/field";
import { SearchBox } from "@/ui/search";
import { Tag } from "@/ui/status";
import { type Column, DataTable } from "@/ui/table";
import { Time } from "@/ui/text";
import { useToast } from "@/ui/toast";
import { errorRules, type Rule, type RuleFields, useUpdateRule } from "./api";
import { Pattern, useCategory, useMatchType } from "./cells";
import { RuleForm } from "./rule-form";

interface Props {
  /** What a new rule begins with; `null`: none is being made. */
  adding: Partial<RuleFields> | null;
  onAdd: () => void;
  onAdded: () => void;
}

export function ErrorRules({ adding, onAdd, onAdded }: Props) {
  const { t } = useTranslation();
  const { q, id } = useSearch({ from: "/shell/rules" });
  const navigate = useNavigate({ from: "/rules" });
  const set = (change: { q?: string; id?: number }) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const { data, error, isPending, refetch } = useQuery(errorRules);
  const category = useCategory();
  const columns = useColumns();
  const rows = useMemo(() => {
    const sought = (q ?? "").toLowerCase();
    const text = (rule: Rule) => `${rule.pattern} ${rule.description} ${rule.category} ${category(rule.category)}`;
    return (data ?? []).filter((rule) => text(rule).toLowerCase().includes(sought));
  }, [data, q, category]);
  const open = data?.find((rule) => rule.id === id);
  if (error) return <Failed error={error} retry={() => void refetch()} />;
  return (
    <>
      <p className="mb-3 max-w-3xl text-sm text-quiet">{t("rules.errors.help")}</p>
      <DataTable
        id="error-rules"
        label={t("rules.errors.title")}
        full
        loading={isPending}
        rows={rows}
        rowId={(rule) => String(rule.id)}
        columns={columns}
        dim={(rule) => !rule.isEnabled}
        onOpen={(rule) => set({ id: rule.id })}
        openId={id === undefined ? null : String(id)}
        toolbar={
          <SearchBox
            label={t("rules.errors.search")}
            value={q ?? ""}
            onChange={(text) => set({ q: text || undefined })}
          />
        }
        empty={
          q !== undefined ? (
            <Empty
              title={t("rules.none")}
              action={<Button onClick={() => set({ q: undefined })}>{t("rules.showAll")}</Button>}
            />
          ) : (
            <Empty
              icon={<ListChecks className="size-6" aria-hidden />}
              title={t("rules.errors.empty")}
              action={
                <Button variant="primary" onClick={onAdd}>
                  {t("rules.errors.add")}
                </Button>
              }
            >
              {t("rules.errors.emptyHelp")}
            </Empty>
          )
        }
      />
      {(adding !== null || open) && (
        <RuleForm
          key={open?.id ?? "new"}
          rule={adding === null ? (open ?? null) : null}
          draft={adding ?? {}}
          onClose={() => {
            onAdded();
            set({ id: undefined });
          }}
        />
      )}
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
        cell: (rule) => <Enabled rule={rule} />,
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
        id: "told",
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

/** What the client is told in place of the upstream's words. */
function Told({ rule }: { rule: Rule }) {
  const { t } = useTranslation();
  if (rule.overrideResponse === null && rule.overrideStatusCode === null) {
    return <span className="text-quiet">{t("rules.errors.asUpstream")}</span>;
  }
  return (
    <span className="flex items-center gap-1.5">
      {rule.overrideStatusCode !== null && <span className="tabular font-medium">{rule.overrideStatusCode}</span>}
      <span className="truncate" title={rule.overrideResponse ?? undefined}>
        {rule.overrideResponse ?? <span className="text-faint">{t("rules.errors.sameWords")}</span>}
      </span>
    </span>
  );
}

function Enabled({ rule }: { rule: Rule }) {
  const { t } = useTranslation();
  const toast = useToast();
  const update = useUpdateRule();
  return (
    <Switch
      label={t("rules.enableOne", { name: rule.pattern })}
      hideLabel
      checked={update.isPending ? (update.variables.isEnabled ?? rule.isEnabled) : rule.isEnabled}
      disabled={update.isPending}
      onChange={(event) =>
        update.mutate(
          { id: rule.id, isEnabled: event.target.checked },
          { onError: (error) => toast.bad(error.message || t("ui.noConnection")) },
        )
      }
    />
  );
}
