/**
 * The decision chain as a timeline: candidates, skipped providers, the choice, attempts, the end.
 */

import type { TFunction } from "i18next";
import { ArrowRight, Check, CircleSlash, RotateCcw, X } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/cx";
import { duration, useFormat } from "@/ui/format";
import { Badge, type Tone } from "@/ui/status";
import { CacheMiss } from "./cache-miss";
import { type Decisions, decisionsOf, NAMED, reasonOf, type Step } from "./chain";
import { type Entry, outcomeOf, toneOf } from "./entry";

export function DecisionChain({ entry }: { entry: Entry }) {
  const { t } = useTranslation();
  const { passedOver, candidates, attempts, notes } = decisionsOf(entry);
  if (passedOver.length + candidates.length + attempts.length + notes.length === 0) {
    return <p className="text-sm text-quiet">{t("logs.chain.none")}</p>;
  }
  return (
    <ol className="space-y-4 pl-5">
      <Considered passedOver={passedOver} candidates={candidates} />
      {attempts.map((step, index) => (
        <Attempt
          // biome-ignore lint/suspicious/noArrayIndexKey: the chain does not change
          key={index}
          step={step}
          number={index + 1}
          miss={entry.cacheMiss}
        />
      ))}
      {notes.map((step, index) => (
        <Point
          // biome-ignore lint/suspicious/noArrayIndexKey: the chain does not change
          key={index}
          tone="bad"
          icon={<X className="size-3" aria-hidden />}
          title={stepName(t, step)}
          at={step.atMs}
        >
          <Why step={step} plain />
        </Point>
      ))}
      <Point
        tone={toneOf(entry)}
        icon={
          toneOf(entry) === "bad" ? (
            <X className="size-3" aria-hidden />
          ) : (
            <Check className="size-3" aria-hidden />
          )
        }
        title={t("logs.chain.end")}
        at={entry.durationMs}
      >
        <Badge tone={toneOf(entry)}>
          {entry.statusCode} {t(`logs.outcomes.${outcomeOf(entry)}`)}
        </Badge>
      </Point>
    </ol>
  );
}

/** The providers that were skipped, and the order of the others. */
function Considered({ passedOver, candidates }: Pick<Decisions, "passedOver" | "candidates">) {
  const { t } = useTranslation();
  return (
    <>
      {passedOver.length > 0 && (
        <Point
          tone="off"
          icon={<CircleSlash className="size-3" aria-hidden />}
          title={t("logs.chain.passedOver")}
        >
          <Steps steps={passedOver} />
        </Point>
      )}
      {candidates.length > 0 && (
        <Point
          tone="plain"
          icon={<ArrowRight className="size-3" aria-hidden />}
          title={t("logs.chain.order")}
        >
          <Steps steps={candidates} numbered />
        </Point>
      )}
    </>
  );
}

/** The selection of a request that is not sent. */
export function SelectionChain({ chain }: { chain: unknown }) {
  const { passedOver, candidates } = decisionsOf({ decisionChain: chain });
  return (
    <ol className="space-y-4 pl-5">
      <Considered passedOver={passedOver} candidates={candidates} />
    </ol>
  );
}

/** Providers with the reason for each. */
function Steps({ steps, numbered = false }: { steps: Step[]; numbered?: boolean }) {
  const List = numbered ? "ol" : "ul";
  return (
    <List className="space-y-1">
      {steps.map((step, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the chain does not change
        <li key={index} className="text-sm">
          {numbered && <span className="tabular mr-1.5 text-faint">{index + 1}.</span>}
          <Who step={step} /> <Why step={step} />
        </li>
      ))}
    </List>
  );
}

/** The text of a step; a step of a later version keeps its name. */
function stepName(t: TFunction, { step }: Step): string {
  const named = NAMED.find((one) => one === step);
  return named ? t(`logs.chain.steps.${named}`) : step;
}

interface AttemptProps {
  step: Step;
  number: number;
  miss: Entry["cacheMiss"];
}

function Attempt({ step, number, miss }: AttemptProps) {
  const { t } = useTranslation();
  const format = useFormat();
  const good = step.step === "succeeded";
  const again = step.step === "retried";
  const icon = good ? (
    <Check className="size-3" aria-hidden />
  ) : again ? (
    <RotateCcw className="size-3" aria-hidden />
  ) : (
    <X className="size-3" aria-hidden />
  );
  return (
    <Point
      tone={good ? "good" : again ? "warn" : "bad"}
      icon={icon}
      title={t("logs.chain.attempt", { number, name: step.providerName })}
      at={step.atMs}
    >
      <div className="flex flex-wrap items-center gap-2 text-sm">
        <span>{stepName(t, step)}</span>
        {step.status !== undefined && <Badge tone={good ? "good" : "bad"}>{step.status}</Badge>}
        {step.tookMs !== undefined && (
          <span className="tabular text-faint">{duration(step.tookMs, format)}</span>
        )}
      </div>
      {good && miss ? <CacheMiss miss={miss} /> : <Why step={step} plain />}
    </Point>
  );
}

const Who = ({ step }: { step: Step }) => <span className="font-medium">{step.providerName}</span>;

/** The reason: translated if it is a fixed one, else the gateway's text, else the step's name. */
function Why({ step, plain = false }: { step: Step; plain?: boolean }) {
  const { t } = useTranslation();
  if (step.detail === undefined && plain) return null;
  const known = step.detail === undefined ? undefined : reasonOf(step.detail);
  const words = known
    ? t(`logs.chain.reasons.${known.name}`, { seconds: known.seconds })
    : (step.detail ?? stepName(t, step));
  return <span className="text-sm break-words text-quiet">{words}</span>;
}

const RINGS: Record<Tone, string> = {
  good: "bg-good-soft text-good",
  warn: "bg-warn-soft text-warn",
  bad: "bg-bad-soft text-bad",
  off: "bg-sunken text-quiet",
  plain: "bg-accent-soft text-accent",
};

function Point({
  tone,
  icon,
  title,
  at,
  children,
}: {
  tone: Tone;
  icon: ReactNode;
  title: string;
  at?: number;
  children: ReactNode;
}) {
  const format = useFormat();
  return (
    <li
      className={cx(
        "relative before:absolute before:top-2 before:-bottom-4",
        "before:-left-5 before:border-l before:border-line last:before:hidden",
      )}
    >
      <span
        className={cx(
          "absolute top-0 -left-[1.8125rem] flex size-5 items-center",
          "justify-center rounded-full ring-4 ring-raised",
          RINGS[tone],
        )}
      >
        {icon}
      </span>
      <div className="mb-1 flex items-baseline justify-between gap-3">
        <span className="text-sm font-medium">{title}</span>
        {at !== undefined && (
          <span className="tabular shrink-0 text-xs text-faint">+{duration(at, format)}</span>
        )}
      </div>
      {children}
    </li>
  );
}
