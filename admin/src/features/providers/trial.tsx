/** Asking a provider for a few words, as it is stored or as it is being typed: which model, and what came of it. */
import { useMutation } from "@tanstack/react-query";
import { Zap } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { type BodyOf, call, type DataOf } from "@/api/client";
import { Button } from "@/ui/button";
import { Input } from "@/ui/field";
import { Notice } from "@/ui/status";

export type Asked = BodyOf<"actions/providers/testProvider">;
type Tested = DataOf<"actions/providers/testProvider">;

interface Props {
  /** What is to be tested, read when the button is pressed. */
  asked: () => Asked;
  /** Beside the button. */
  children?: ReactNode;
}

export function Trial({ asked, children }: Props) {
  const { t } = useTranslation();
  const list = useId();
  const [model, setModel] = useState("");
  const trial = useMutation({
    mutationFn: () =>
      call("actions/providers/testProvider", { ...asked(), ...(model.trim() ? { model: model.trim() } : {}) }),
  });
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        <Button
          size="sm"
          icon={<Zap className="size-3.5" aria-hidden />}
          busy={trial.isPending}
          onClick={() => trial.mutate()}
        >
          {t("providers.test")}
        </Button>
        <Input
          list={list}
          aria-label={t("providers.testModel")}
          title={t("providers.testModel")}
          placeholder={t("providers.testModelFirst")}
          spellCheck={false}
          className="!h-8 !w-auto min-w-0 flex-1 basis-48 !text-xs"
          value={model}
          onChange={(event) => setModel(event.target.value)}
        />
        <datalist id={list}>
          {trial.data?.models.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {children}
      </div>
      <Result result={trial.data} error={trial.error} />
    </div>
  );
}

function Result({ result, error }: { result: Tested | undefined; error: Error | null }) {
  const { t } = useTranslation();
  if (error) return <Notice tone="bad">{error.message || t("ui.noConnection")}</Notice>;
  if (!result) return null;
  const facts = [result.model, result.status && `HTTP ${result.status}`, `${result.latencyMs} ms`];
  return (
    <Notice
      tone={result.ok ? "good" : "bad"}
      title={`${result.ok ? t("providers.testGood") : t("providers.testBad")} — ${facts.filter(Boolean).join(" · ")}`}
    >
      <span className="line-clamp-4" title={result.message}>
        {result.message}
      </span>
    </Notice>
  );
}
