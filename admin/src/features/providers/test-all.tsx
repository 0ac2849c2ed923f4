/** Tests all enabled providers, some at a time, and shows each result. */
import { useMutation } from "@tanstack/react-query";
import { LoaderCircle, Zap } from "lucide-react";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Dialog } from "@/ui/dialog";
import { Badge } from "@/ui/status";
import { type Tested, testProvider } from "./api";
import type { Provider } from "./selection";
import { useTestWords } from "./test-result";

const AT_ONCE = 4;

type Outcome = Tested | Error | "running";

export function TestAll({ providers, onClose }: { providers: Provider[]; onClose: () => void }) {
  const { t } = useTranslation();
  const enabled = providers.filter((one) => one.isEnabled);
  const [outcomes, setOutcomes] = useState<Record<number, Outcome>>({});
  const closed = useRef(false);
  const run = useMutation({
    mutationFn: async () => {
      setOutcomes({});
      const waiting = [...enabled];
      const note = (id: number, outcome: Outcome) =>
        setOutcomes((old) => ({ ...old, [id]: outcome }));
      const worker = async () => {
        for (let one = waiting.shift(); one && !closed.current; one = waiting.shift()) {
          const { id } = one;
          note(id, "running");
          note(id, await testProvider({ providerId: id }).catch((error: Error) => error));
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
    },
  });
  const close = () => {
    closed.current = true;
    onClose();
  };
  return (
    <Dialog
      open
      onClose={close}
      title={t("providers.testAll")}
      description={t("providers.testAllHelp", { count: enabled.length })}
      width="max-w-2xl"
      footer={
        <>
          <Button onClick={close}>{t("ui.close")}</Button>
          <Button
            variant="primary"
            icon={<Zap className="size-4" aria-hidden />}
            busy={run.isPending}
            onClick={() => run.mutate()}
          >
            {t("providers.testAllStart", { count: enabled.length })}
          </Button>
        </>
      }
    >
      <ul className="divide-y divide-line">
        {enabled.map((one) => (
          <li key={one.id} className="flex flex-wrap items-start gap-x-3 gap-y-1 py-2 text-sm">
            <span className="min-w-0 flex-1 basis-40 truncate font-medium" title={one.name}>
              {one.name}
            </span>
            <Row outcome={outcomes[one.id]} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function Row({ outcome }: { outcome: Outcome | undefined }) {
  const { t } = useTranslation();
  if (outcome === undefined)
    return <span className="text-xs text-faint">{t("providers.notTested")}</span>;
  if (outcome === "running")
    return (
      <LoaderCircle
        className="size-4 animate-spin text-faint"
        role="status"
        aria-label={t("ui.loading")}
      />
    );
  return <Done outcome={outcome} />;
}

function Done({ outcome }: { outcome: Tested | Error }) {
  const { t } = useTranslation();
  const words = useTestWords();
  const failed = outcome instanceof Error;
  const ok = !failed && outcome.ok;
  const facts = failed
    ? []
    : [outcome.model, outcome.status && `HTTP ${outcome.status}`, `${outcome.latencyMs} ms`];
  return (
    <>
      <span className="text-xs text-faint">{facts.filter(Boolean).join(" · ")}</span>
      <Badge tone={ok ? "good" : "bad"}>
        {ok ? t("providers.testGood") : t("providers.testBad")}
      </Badge>
      {!ok && (
        <span className="w-full text-xs break-words text-bad">
          {[failed ? undefined : words(outcome), outcome.message || t("ui.noConnection")]
            .filter(Boolean)
            .join(" — ")}
        </span>
      )}
    </>
  );
}
