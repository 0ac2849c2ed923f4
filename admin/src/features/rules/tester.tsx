/** Tests a pasted upstream error: the gateway's reaction, and the error that clients would get. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { Button } from "@/ui/button";
import { Code } from "@/ui/code";
import { Drawer } from "@/ui/dialog";
import { useDiscard } from "@/ui/discard";
import { Empty, Failed } from "@/ui/empty";
import { Field, Input, Textarea } from "@/ui/field";
import { Facts } from "@/ui/page";
import { Notice, Tag } from "@/ui/status";
import { Tabs } from "@/ui/tabs";
import { type RuleFields, type Trial, useTrial } from "./api";
import { Pattern, useCategory, useMatchType } from "./cells";

/** The longest pattern that the gateway accepts. */
const LONGEST = 500;
/** The order of the formats. */
const FORMATS = ["native", "responses", "chat-compatible", "alt-cli"];

interface Props {
  onClose: () => void;
  onMakeRule: (draft: Partial<RuleFields>) => void;
}

export function Tester({ onClose, onMakeRule }: Props) {
  const { t } = useTranslation();
  const trial = useTrial();
  const [text, setText] = useState("");
  const [status, setStatus] = useState("400");
  const [empty, setEmpty] = useState(false);
  const fault = trial.error instanceof ApiError ? trial.error : undefined;
  const at = (field: string) => (fault?.field === field ? fault.atField : undefined);
  const { close, release } = useDiscard(text.trim() !== "" && !trial.isSuccess, onClose);
  const submit = () => {
    if (text.trim() === "") return setEmpty(true);
    trial.mutate({ message: text, statusCode: Number(status) });
  };
  return (
    <Drawer
      open
      onClose={close}
      title={t("rules.tester.title")}
      description={t("rules.tester.help")}
      footer={<Button onClick={close}>{t("ui.close")}</Button>}
    >
      <form
        noValidate
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <Field
          label={t("rules.tester.text")}
          help={t("rules.tester.textHelp")}
          error={empty ? t("rules.tester.noText") : at("message")}
        >
          {(ids) => (
            <Textarea
              {...ids}
              rows={6}
              spellCheck={false}
              className="font-mono !text-xs"
              placeholder={
                '{"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}}'
              }
              value={text}
              onChange={(event) => {
                setText(event.target.value);
                setEmpty(false);
              }}
            />
          )}
        </Field>
        <div className="flex items-end gap-3">
          <Field label={t("rules.tester.status")} error={at("statusCode")} className="w-40">
            {(ids) => (
              <Input
                {...ids}
                inputMode="numeric"
                autoComplete="off"
                value={status}
                onChange={(event) => setStatus(event.target.value.replace(/\D/g, "").slice(0, 3))}
              />
            )}
          </Field>
          <Button type="submit" variant="primary" busy={trial.isPending}>
            {t("rules.tester.submit")}
          </Button>
        </div>
        {fault && fault.field === undefined && <Failed error={fault} />}
      </form>
      <div className="mt-6 border-t border-line pt-4" aria-live="polite">
        {trial.data ? (
          <Outcome
            trial={trial.data}
            onMakeRule={() => {
              release(true);
              onMakeRule({
                pattern: trial.data.message.slice(0, LONGEST),
                appliesTo: Number(status) >= 500 ? "all" : "4xx",
              });
            }}
          />
        ) : (
          <Empty title={t("rules.tester.empty")}>{t("rules.tester.emptyHelp")}</Empty>
        )}
      </div>
    </Drawer>
  );
}

function Outcome({ trial, onMakeRule }: { trial: Trial; onMakeRule: () => void }) {
  const { t } = useTranslation();
  const matchType = useMatchType();
  const category = useCategory();
  const first = trial.matches[0];
  const known = FORMATS.filter((format) => format in trial.replies);
  const others = Object.keys(trial.replies).filter((format) => !known.includes(format));
  const replies = [...known, ...others].map((format) => [format, trial.replies[format]] as const);
  return (
    <div className="space-y-5">
      <Notice
        tone={trial.statusCode === null ? "warn" : "good"}
        title={
          trial.statusCode === null
            ? t("rules.tester.next")
            : t("rules.tester.returned", { status: trial.statusCode })
        }
        action={
          !first && (
            <Button size="sm" onClick={onMakeRule}>
              {t("rules.tester.makeRule")}
            </Button>
          )
        }
      >
        {first
          ? t("rules.tester.byRule", { id: first.id, category: category(first.category) })
          : t("rules.tester.byNone", { reason: trial.reason })}
      </Notice>
      <section>
        <h3 className="mb-2">{t("rules.tester.read")}</h3>
        <Facts
          facts={[
            [t("rules.tester.message"), trial.message || "—"],
            [t("rules.tester.type"), trial.type ?? "—"],
            [t("rules.tester.code"), trial.code ?? "—"],
          ]}
        />
      </section>
      {first && (
        <section>
          <h3 className="mb-2">{t("rules.tester.matches")}</h3>
          <ol className="divide-y divide-line rounded-lg border border-line">
            {trial.matches.map((rule, index) => (
              <li key={rule.id} className="flex items-center gap-3 px-3 py-2">
                <span className="min-w-0 flex-1">
                  <Pattern text={rule.pattern} />
                  <span className="block truncate text-xs text-faint">
                    {t("rules.tester.rule", { id: rule.id, priority: rule.priority })} ·{" "}
                    {matchType(rule.matchType)} · {category(rule.category)}
                  </span>
                </span>
                {index === 0 && <Tag>{t("rules.tester.decides")}</Tag>}
              </li>
            ))}
          </ol>
        </section>
      )}
      {replies.length > 0 && (
        <section>
          <h3 className="mb-2">{t("rules.tester.replies")}</h3>
          <Tabs
            label={t("rules.tester.replies")}
            tabs={replies.map(([format, body]) => ({
              id: format,
              label: format,
              content: (
                <Code
                  label={trial.statusCode === null ? undefined : `HTTP ${trial.statusCode}`}
                  text={JSON.stringify(body, null, 2)}
                />
              ),
            }))}
          />
        </section>
      )}
    </div>
  );
}
