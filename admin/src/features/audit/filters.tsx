/** The audit log's filters as chips; their values live in the address. */
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Field, Input } from "@/ui/field";
import type { Filter } from "@/ui/filters";
import type { AuditSearch } from "./search";

type Change = (change: Partial<AuditSearch>) => void;

/** The prefixes of the operations' names. */
const AREAS = [
  "users.",
  "keys.",
  "providers.",
  "model-prices.",
  "sensitive-words.",
  "error-rules.",
  "system-config.",
  "notifications.",
] as const;

export function useAuditFilters(search: AuditSearch, set: Change): Filter[] {
  const { t } = useTranslation();
  const words = (id: "actor" | "target", help: string): Filter => ({
    id,
    label: t(`audit.${id}`),
    shown: search[id],
    clear: () => set({ [id]: undefined }),
    edit: (done) => (
      <Words
        label={t(`audit.${id}`)}
        help={help}
        value={search[id] ?? ""}
        onChange={(value) => {
          set({ [id]: value });
          done();
        }}
      />
    ),
  });
  return [
    words("actor", t("audit.actorHelp")),
    {
      id: "action",
      label: t("audit.action"),
      shown: search.action,
      clear: () => set({ action: undefined }),
      edit: (done) => (
        <Words
          label={t("audit.action")}
          help={t("audit.actionHelp")}
          value={search.action ?? ""}
          known={AREAS}
          onChange={(value) => {
            set({ action: value });
            done();
          }}
        />
      ),
    },
    words("target", t("audit.targetHelp")),
    {
      id: "time",
      label: t("audit.when"),
      shown:
        search.start === undefined && search.end === undefined
          ? undefined
          : `${search.start ?? "…"} – ${search.end ?? "…"}`,
      clear: () => set({ start: undefined, end: undefined }),
      edit: (done) => <Days search={search} set={set} onDone={done} />,
    },
  ];
}

function Words({
  label,
  help,
  value,
  known = [],
  onChange,
}: {
  label: string;
  help: string;
  value: string;
  known?: readonly string[];
  onChange: (value: string | undefined) => void;
}) {
  const { t } = useTranslation();
  const [typed, setTyped] = useState(value);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onChange(typed.trim() || undefined);
  };
  return (
    <form onSubmit={submit} className="space-y-2">
      <Input
        aria-label={label}
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      <p className="text-xs text-faint">{help}</p>
      {known.length > 0 && (
        <div className="flex flex-wrap gap-1">
          {known.map((word) => (
            <Button key={word} size="sm" className="font-mono" onClick={() => onChange(word)}>
              {word}
            </Button>
          ))}
        </div>
      )}
      <Button type="submit" size="sm" variant="primary">
        {t("audit.apply")}
      </Button>
    </form>
  );
}

function Days({ search, set, onDone }: { search: AuditSearch; set: Change; onDone: () => void }) {
  const { t } = useTranslation();
  const [start, setStart] = useState(search.start ?? "");
  const [end, setEnd] = useState(search.end ?? "");
  return (
    <form
      className="space-y-3"
      onSubmit={(event) => {
        event.preventDefault();
        set({ start: start || undefined, end: end || undefined });
        onDone();
      }}
    >
      <Field label={t("audit.from")}>
        {(ids) => (
          <Input
            {...ids}
            type="date"
            max={end || undefined}
            value={start}
            onChange={(event) => setStart(event.target.value)}
          />
        )}
      </Field>
      <Field label={t("audit.to")}>
        {(ids) => (
          <Input
            {...ids}
            type="date"
            min={start || undefined}
            value={end}
            onChange={(event) => setEnd(event.target.value)}
          />
        )}
      </Field>
      <Button type="submit" size="sm" variant="primary">
        {t("audit.apply")}
      </Button>
    </form>
  );
}
