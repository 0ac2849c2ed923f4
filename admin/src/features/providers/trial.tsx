/**
 * Tests a provider with a short request, as it is stored or as it is being edited, with a chosen
 * model. The models that the provider lists are offered for the next test.
 */
import { useMutation } from "@tanstack/react-query";
import { Zap } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/client";
import { Button } from "@/ui/button";
import { cx } from "@/ui/cx";
import { Input } from "@/ui/field";
import { Notice } from "@/ui/status";
import { type Asked, testProvider } from "./api";
import { TestResult } from "./test-result";

/** The number of models that are shown as buttons; the rest are offered while typing. */
const OFFERED = 8;

interface Props {
  /** The provider to test, read when the button is pressed. */
  asked: () => Asked;
  /** Shows a fault at the field that it names; true if there is such a field. */
  onFault?: (error: unknown) => boolean;
  /** Shown beside the button. */
  children?: ReactNode;
}

export function Trial({ asked, onFault, children }: Props) {
  const { t } = useTranslation();
  const list = useId();
  const [model, setModel] = useState("");
  const [fault, setFault] = useState<Error | null>(null);
  const trial = useMutation({
    mutationFn: (name: string) =>
      testProvider({ ...asked(), ...(name.trim() ? { model: name.trim() } : {}) }),
    onMutate: () => setFault(null),
    onError: (error) => setFault(onFault?.(error) ? null : error),
  });
  const listed = trial.data?.models ?? [];
  const offered = trial.data?.ok === false ? listed.slice(0, OFFERED) : [];
  return (
    <div className="space-y-2">
      <div className="flex flex-wrap items-center gap-2">
        <Button
          size="sm"
          icon={<Zap className="size-3.5" aria-hidden />}
          busy={trial.isPending}
          onClick={() => trial.mutate(model)}
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
          {listed.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        {children}
      </div>
      {fault && (
        <Notice tone="bad">
          {fault instanceof ApiError ? fault.message : t("ui.noConnection")}
        </Notice>
      )}
      {!fault && trial.data && <TestResult result={trial.data} />}
      {!fault && offered.length > 0 && (
        <div className="flex flex-wrap items-center gap-1.5 text-xs">
          <span className="text-faint">{t("providers.tryWith")}</span>
          {offered.map((name) => (
            <button
              key={name}
              type="button"
              className={cx(
                "max-w-full truncate rounded border",
                "border-line px-1.5 py-0.5 hover:bg-hover",
              )}
              onClick={() => {
                setModel(name);
                trial.mutate(name);
              }}
            >
              {name}
            </button>
          ))}
          {listed.length > offered.length && (
            <span className="text-faint">
              {t("providers.andMore", { count: listed.length - offered.length })}
            </span>
          )}
        </div>
      )}
    </div>
  );
}
