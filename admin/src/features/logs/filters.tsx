/** The filters of the request log, each shown as a chip that opens its control. */
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import * as queries from "@/api/queries";
import { useIsAdmin, useUsers } from "@/parts/session";
import { Button } from "@/ui/button";
import { type Choice, Field, Input } from "@/ui/field";
import { choiceFilter, type Filter, Filters } from "@/ui/filters";
import { dayOf, dayText, exactTime, isDay, useFormat } from "@/ui/format";
import { statuses } from "./data";
import type { LogsSearch } from "./search";

/** The time ranges offered as buttons, in hours. */
const RANGES = [1, 24, 168, 720] as const;

export function LogFilterBar({
  search,
  set,
}: {
  search: LogsSearch;
  set: (change: Partial<LogsSearch>) => void;
}) {
  const { t } = useTranslation();
  const format = useFormat();
  const admin = useIsAdmin();
  const people = useUsers();
  const providers = useQuery({ ...queries.providers, enabled: admin });
  const knownModels = useQuery(queries.models);
  const knownStatuses = useQuery(statuses);
  const users = people.data ?? [];
  const userChoices = users.map(({ id, name }) => ({ value: String(id), label: name }));
  const keyChoices = users.flatMap(({ name, keys }) =>
    keys.map((key) => ({
      value: String(key.id),
      label: admin ? `${name} / ${key.name}` : key.name,
    })),
  );
  const providerChoices = (providers.data ?? []).map(({ id, name }) => ({
    value: String(id),
    label: name,
  }));

  const select = (
    id: "user" | "provider" | "key" | "model" | "status" | "retries",
    choices: Choice[],
  ): Filter =>
    choiceFilter({
      id,
      label: t(`logs.${id}`),
      value: search[id] === undefined ? undefined : String(search[id]),
      choices,
      onChange: (chosen) =>
        set({ [id]: id === "model" || chosen === undefined ? chosen : Number(chosen) }),
    });
  const textInput = (id: "session" | "endpoint" | "id"): Filter["edit"] =>
    function edit(done) {
      return (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const value = String(new FormData(event.currentTarget).get("value") ?? "").trim();
            set({ [id]: value || undefined });
            done();
          }}
        >
          <Input
            name="value"
            aria-label={t(`logs.${id}`)}
            defaultValue={search[id] ?? ""}
            spellCheck={false}
          />
          <Button type="submit" size="sm" variant="primary" className="mt-2">
            {t("logs.apply")}
          </Button>
        </form>
      );
    };
  const moment = (at: string | undefined) =>
    at === undefined ? "" : isDay(at) ? dayText(at, format) : exactTime(new Date(at), format);
  const filter = (
    id: keyof LogsSearch,
    shown: string | undefined,
    edit: Filter["edit"],
  ): Filter => ({
    id,
    label: t(`logs.${id}`),
    shown,
    edit,
    clear: () => set({ [id]: undefined }),
  });

  const filters: Filter[] = [
    {
      id: "span",
      label: t("logs.span"),
      shown:
        search.from === undefined && search.to === undefined
          ? undefined
          : `${moment(search.from) || "…"} – ${moment(search.to) || t("logs.now")}`,
      edit: (done) => <TimeRange search={search} set={set} done={done} />,
      clear: () => set({ from: undefined, to: undefined }),
    },
    select("model", (knownModels.data ?? []).map(asChoice)),
    select("status", (knownStatuses.data ?? []).map(String).map(asChoice)),
    filter("failed", search.failed ? t("ui.yes") : undefined, (done) => (
      <Button
        size="sm"
        variant="primary"
        onClick={() => {
          set({ failed: search.failed ? undefined : true });
          done();
        }}
      >
        {search.failed ? t("logs.showAll") : t("logs.onlyFailed")}
      </Button>
    )),
    ...(admin ? [select("user", userChoices), select("provider", providerChoices)] : []),
    select("key", keyChoices),
    filter("session", search.session, textInput("session")),
    filter("id", search.id, textInput("id")),
    filter("endpoint", search.endpoint, textInput("endpoint")),
    {
      ...select("retries", ["1", "2", "3", "5"].map(asChoice)),
      shown:
        search.retries === undefined
          ? undefined
          : t("logs.retriesShown", { count: search.retries }),
    },
  ];
  return <Filters filters={filters} />;
}

const asChoice = (value: string): Choice => ({ value, label: value });

function TimeRange({
  search,
  set,
  done,
}: {
  search: LogsSearch;
  set: (change: Partial<LogsSearch>) => void;
  done: () => void;
}) {
  const { t } = useTranslation();
  const { timeZone } = useFormat();
  const dayIn = (at: string | undefined) =>
    at === undefined || isDay(at) ? at : dayOf(at, timeZone);
  const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  return (
    <>
      <div className="mb-3 flex flex-wrap gap-1.5">
        {RANGES.map((hours) => (
          <Button
            key={hours}
            size="sm"
            onClick={() => {
              set({ from: ago(hours), to: undefined });
              done();
            }}
          >
            {t(`logs.last.${hours}`)}
          </Button>
        ))}
      </div>
      <form
        className="space-y-2"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const day = (name: string) => String(form.get(name) ?? "") || undefined;
          set({ from: day("from"), to: day("to") });
          done();
        }}
      >
        {(["from", "to"] as const).map((end) => (
          <Field key={end} label={t(`logs.${end}`)}>
            {(ids) => <Input {...ids} type="date" name={end} defaultValue={dayIn(search[end])} />}
          </Field>
        ))}
        <p className="text-xs text-faint">{t("logs.spanHelp")}</p>
        <Button type="submit" size="sm" variant="primary">
          {t("logs.apply")}
        </Button>
      </form>
    </>
  );
}
