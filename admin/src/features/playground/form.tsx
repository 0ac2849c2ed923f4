/** The form of a request: the key, the format, the model and the body. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import type { TFunction } from "i18next";
import { Route, Send, Square, SquareTerminal } from "lucide-react";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { curlLine, type Format, proxyBase } from "@/api/client-settings";
import * as queries from "@/api/queries";
import { useExampleModel } from "@/parts/example-model";
import { useIsAdmin, useSession, type useUsers } from "@/parts/session";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { type Question, useConfirm } from "@/ui/confirm";
import { Field, Input, Select, Switch } from "@/ui/field";
import { Card } from "@/ui/page";
import { Notice } from "@/ui/status";
import { Body } from "./body";
import { exampleOf, type SentFile } from "./endpoint";
import type { ToExplain } from "./explained";
import { type Draft, isStreamed, refused, type Step, simpleBody, stepsOf, toSend } from "./request";

const route = getRouteApi("/shell/playground");
const FORMATS: readonly Format[] = ["native", "responses", "chat-compatible", "alt-cli"];
/** The largest number of suggested models. */
const SUGGESTED = 200;

const BLANK = {
  stream: true,
  raw: false,
  system: "",
  prompt: "",
  maxTokens: "",
  body: "",
  file: undefined as SentFile | undefined,
  /** The JSON as it was made from the fields. */
  made: "",
};
/** The last input of a caller, so that it is kept while another page is open. */
let kept: { caller: string; input: typeof BLANK } | undefined;

interface Props {
  users: NonNullable<ReturnType<typeof useUsers>["data"]>;
  running: boolean;
  onSend: (asked: ReturnType<typeof toSend>) => void;
  /** Asks which providers the request would go to; administrators may. */
  onExplain: ((asked: ToExplain) => void) | undefined;
  onStop: () => void;
}

export function AskForm({ users, running, onSend, onExplain, onStop }: Props) {
  const { t } = useTranslation();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const example = useExampleModel();
  const confirm = useConfirm();
  const { role, userId, keyId } = useSession();
  const caller = [role, userId, keyId].join(" ");
  const [rest, setRest] = useState(kept?.caller === caller ? kept.input : BLANK);
  const [model, setModel] = useState(search.model ?? "");
  const [tried, setTried] = useState(false);
  const [curl, setCurl] = useState(false);
  const keys = useKeys(users);
  const chosen = keys.find(({ id }) => id === search.key) ?? keys[0];
  const { data: endpoints } = useQuery(queries.endpoints);
  const endpoint = endpoints?.find(({ name }) => name === search.endpoint);
  const format = endpoint?.format ?? search.format ?? "native";
  const exampleModel = exampleOf(endpoint, example(format));
  const draft: Draft = { ...rest, format, endpoint, model: model.trim() || exampleModel };
  const fault = refused(draft);
  useEffect(() => {
    kept = { caller, input: rest };
  }, [caller, rest]);
  const change = (changed: Partial<typeof BLANK>) => setRest((old) => ({ ...old, ...changed }));
  const go = (changed: Partial<typeof search>) =>
    void navigate({ search: (old) => ({ ...old, ...changed }), replace: true });
  const showJson = async () => {
    const made = JSON.stringify(simpleBody(draft), null, 2);
    const isEdited = rest.body !== rest.made && rest.body !== made;
    const replaces = !isEdited || (await confirm(questionAbout(t)));
    change(replaces ? { raw: true, body: made, made } : { raw: true });
  };
  const submit = () => {
    setTried(true);
    if (fault || !chosen || running) return;
    go({ model: model.trim() || undefined });
    onSend(toSend(draft, chosen.id));
  };
  const explain = () => {
    setTried(true);
    if (!fault && chosen) onExplain?.({ ...toSend(draft, chosen.id), model: draft.model });
  };
  return (
    <Card>
      <form
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      >
        <Field label={t("playground.key")} help={t("playground.keyHelp")}>
          {(ids) => (
            <Select
              {...ids}
              value={String(chosen?.id ?? "")}
              choices={keys.map(({ id, label }) => ({ value: String(id), label }))}
              onChange={(event) => go({ key: Number(event.target.value) })}
            />
          )}
        </Field>
        <Field label={t("playground.endpoint")}>
          {(ids) => (
            <Select
              {...ids}
              value={endpoint?.name ?? ""}
              choices={[
                { value: "", label: t("playground.reply") },
                ...(endpoints ?? []).map(({ name, path }) => ({
                  value: name,
                  label: path.startsWith("/") ? path : `:${path}`,
                })),
              ]}
              onChange={(event) => {
                if (rest.raw) change({ raw: false });
                go({ endpoint: event.target.value || undefined });
              }}
            />
          )}
        </Field>
        {endpoint === undefined && (
          <Field label={t("playground.format")}>
            {(ids) => (
              <Select
                {...ids}
                value={format}
                choices={FORMATS.map((one) => ({
                  value: one,
                  label: t(`playground.formats.${one}`),
                }))}
                onChange={(event) => {
                  const other = event.target.value as Format;
                  // A body of one format is not valid in another.
                  if (rest.raw) change({ raw: false });
                  go({ format: other });
                }}
              />
            )}
          </Field>
        )}
        {(!rest.raw || format === "alt-cli") && (
          <ModelAndStream
            model={model}
            example={exampleModel}
            stream={rest.stream}
            onModel={setModel}
            onStream={endpoint === undefined ? (stream) => change({ stream }) : undefined}
          />
        )}
        <Body
          draft={draft}
          fault={tried || (fault?.what === "json" && rest.raw) ? fault : undefined}
          onChange={change}
          onRaw={(raw) => (raw ? void showJson() : change({ raw }))}
        />
        {chosen && <Charged holder={chosen} />}
        <div className="flex flex-wrap gap-2">
          {/* Two elements: a single one that changes during the click would submit the form. */}
          {running ? (
            <Button key="stop" icon={<Square className="size-3.5" aria-hidden />} onClick={onStop}>
              {t("playground.stop")}
            </Button>
          ) : (
            <Button
              key="send"
              type="submit"
              variant="primary"
              icon={<Send className="size-3.5" aria-hidden />}
            >
              {t("playground.send")}
            </Button>
          )}
          {onExplain && (
            <Button
              icon={<Route className="size-3.5" aria-hidden />}
              title={t("playground.explainHelp")}
              onClick={explain}
            >
              {t("playground.explain")}
            </Button>
          )}
          <Button
            icon={<SquareTerminal className="size-3.5" aria-hidden />}
            aria-expanded={curl}
            onClick={() => setCurl(!curl)}
          >
            {t("logs.asCurl")}
          </Button>
        </div>
        {curl && <AsCurl draft={draft} />}
      </form>
    </Card>
  );
}

const questionAbout = (t: TFunction): Question => ({
  title: t("playground.replaceTitle"),
  body: t("playground.replaceBody"),
  action: t("playground.replace"),
});

/** The keys that can be selected. The caller's own come first. */
function useKeys(users: Props["users"]) {
  const { userId } = useSession();
  const own = (id: number) => (id === userId ? 0 : 1);
  return users
    .toSorted((a, b) => own(a.id) - own(b.id) || a.name.localeCompare(b.name))
    .flatMap((user) =>
      user.keys.map((key) => ({
        id: key.id,
        user: user.name,
        name: key.name,
        foreign: user.id !== userId,
        label: user.id === userId ? key.name : `${user.name} / ${key.name}`,
      })),
    );
}

interface ModelProps {
  model: string;
  example: string;
  stream: boolean;
  onModel: (model: string) => void;
  onStream: ((stream: boolean) => void) | undefined;
}

function ModelAndStream({ model, example, stream, onModel, onStream }: ModelProps) {
  const { t } = useTranslation();
  const list = useId();
  const models = useModels();
  return (
    <>
      <Field label={t("playground.model")}>
        {(ids) => (
          <Input
            {...ids}
            value={model}
            list={list}
            placeholder={example}
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => onModel(event.target.value)}
          />
        )}
      </Field>
      <datalist id={list}>
        {models.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {onStream && (
        <Switch
          label={t("playground.stream")}
          checked={stream}
          onChange={(event) => onStream(event.target.checked)}
          className="flex"
        />
      )}
    </>
  );
}

/** The known models: those that providers name, and those that were requested. */
function useModels(): string[] {
  const admin = useIsAdmin();
  const { data: providers } = useQuery({ ...queries.providers, enabled: admin });
  const { data: asked } = useQuery(queries.models);
  const named = (providers ?? [])
    .filter((provider) => provider.isEnabled)
    .flatMap((provider) => [
      ...provider.allowedModels,
      ...Object.keys(provider.modelRedirects ?? {}),
    ])
    .filter((model) => !model.endsWith("*"));
  return [...new Set([...named, ...(asked ?? [])])].sort().slice(0, SUGGESTED);
}

/** The consequences of sending, shown before. */
function Charged({ holder }: { holder: { user: string; name: string; foreign: boolean } }) {
  const { t } = useTranslation();
  return (
    <Notice tone="warn">
      {t("playground.charged", { user: holder.user, key: holder.name })}
      {holder.foreign && <span className="mt-1 block">{t("playground.audited")}</span>}
    </Notice>
  );
}

function AsCurl({ draft }: { draft: Draft }) {
  const { t } = useTranslation();
  const { proxyPort, proxyTls } = useSession();
  const base = proxyBase(window.location, { port: proxyPort, tls: proxyTls });
  const native = draft.format === "native";
  const line = ({ path, body, form }: Step) =>
    curlLine({ base, path, body, form, stream: isStreamed(draft), native });
  return (
    <div className="space-y-1.5">
      <Code label="curl" text={stepsOf(draft).map(line).join("\n\n")} />
      <p className="text-xs text-faint">{t("playground.curlHelp")}</p>
    </div>
  );
}
