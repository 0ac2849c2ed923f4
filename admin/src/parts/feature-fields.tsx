/**
 * Which features of requests a record allows and denies: two lists, two presets for the second, and
 * what the names mean.
 */
import { type FieldValues, type Path, type UseFormReturn, useController } from "react-hook-form";
import { useTranslation } from "react-i18next";
import type { BodyOf } from "@/api/client";
import { Button } from "@/ui/button";
import { ListField } from "./list-field";

export type Feature = NonNullable<BodyOf<"actions/keys/addKey">["deniedFeatures"]>[number];

/** The hosted tools, what else a request may use, and the endpoints beside the replies. */
const FEATURES = [
  "web_search",
  "partner_search",
  "image_search",
  "maps",
  "web_fetch",
  "image_generation",
  "code_interpreter",
  "file_search",
  "computer",
  "mcp",
  "adviser",
  "other_tools",
  "service_tier",
  "speed",
  "inference_geo",
  "routing",
  "background",
  "thread",
  "billing_policy",
  "anthropic-user-profile-id",
  "anthropic-workspace-id",
  "embeddings",
  "rerank",
  "moderations",
  "completions",
  "images",
  "audio",
  "compact",
  "batches",
  "files",
] as const satisfies readonly Feature[];

/** Names of several tools at once: each is a preset. */
const CLASSES = ["hosted_tools", "unpriced_tools"] as const satisfies readonly Feature[];

const NAMES = [...CLASSES, ...FEATURES];
/** Fails to compile if the gateway knows a feature that this list lacks. */
export const COMPLETE: Exclude<Feature, (typeof NAMES)[number]> extends never ? true : never = true;

interface Props<T extends FieldValues> {
  form: UseFormReturn<T>;
  allowed: Path<T>;
  denied: Path<T>;
  /** Of a provider: it has no rank among key, user and group. */
  ofProvider?: boolean;
  disabled?: boolean;
}

export function FeatureFields<T extends FieldValues>(props: Props<T>) {
  const { form, allowed, denied, ofProvider, disabled } = props;
  const { t } = useTranslation();
  const { field } = useController({ control: form.control, name: denied });
  const chosen: string[] = field.value;
  const list = (name: Path<T>, kind: "allowed" | "denied") => (
    <ListField
      form={form}
      name={name}
      label={t(`features.${kind}`)}
      help={t(ofProvider ? `features.${kind}AtProvider` : `features.${kind}Help`)}
      known={NAMES}
      placeholder={t("features.none")}
      disabled={disabled}
    />
  );
  return (
    <div className="grid gap-x-4 gap-y-3 sm:col-span-2">
      {list(denied, "denied")}
      {!disabled && (
        <div className="flex flex-wrap gap-2">
          {CLASSES.map((name) => (
            <Button
              key={name}
              size="sm"
              disabled={chosen.includes(name)}
              onClick={() => field.onChange([...chosen, name])}
            >
              {t(`features.presets.${name}`)}
            </Button>
          ))}
        </div>
      )}
      {list(allowed, "allowed")}
      <details className="text-xs text-quiet">
        <summary className="cursor-pointer">{t("features.names")}</summary>
        <dl className="mt-2 grid gap-x-4 gap-y-1 sm:grid-cols-[auto_1fr]">
          {NAMES.map((name) => (
            <div key={name} className="contents">
              <dt className="font-mono">{name}</dt>
              <dd className="mb-1 sm:mb-0">{t(`features.of.${name}`)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}
