/** The limits of a user or a key, as a section of a form. */
import type { ReactNode } from "react";
import type { FieldValues, Path, UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { NumberField, SelectField, TextField } from "@/parts/fields";
import { Section } from "@/ui/field";
import { useFormat } from "@/ui/format";
import { type LimitValues, MONEY } from "./values";

interface Props<T extends FieldValues & LimitValues> {
  form: UseFormReturn<T>;
  /** Additional fields of the section. */
  children?: ReactNode;
  /** The user's own limit, for keys. */
  most?: Partial<Record<string, string>>;
  /** The reason why the limits cannot be changed. */
  locked?: string;
}

export function LimitFields<T extends FieldValues & LimitValues>(props: Props<T>) {
  const { form, children, most, locked } = props;
  const { t } = useTranslation();
  const { currency } = useFormat();
  const of = (name: keyof LimitValues) => ({
    form,
    name: name as Path<T>,
    label: t(`people.${name}`),
  });
  const unlimited = { placeholder: t("people.noLimit") };
  const mode = form.watch("dailyResetMode" as Path<T>) === "rolling" ? "rolling" : "fixed";
  return (
    <Section
      title={t("people.limits")}
      help={locked ?? t("people.limitsHelp")}
      disabled={locked !== undefined}
    >
      {MONEY.map((name) => (
        <NumberField
          key={name}
          {...of(name)}
          unit={currency}
          help={most?.[name] && t("people.userLimit", { amount: most[name] })}
          control={unlimited}
        />
      ))}
      <NumberField
        {...of("limitConcurrentSessions")}
        help={t("people.sessionsHelp")}
        control={unlimited}
      />
      {children}
      <SelectField
        {...of("dailyResetMode")}
        help={t(`people.reset.${mode}Help`)}
        choices={(["fixed", "rolling"] as const).map((value) => ({
          value,
          label: t(`people.reset.${value}`),
        }))}
      />
      {mode === "fixed" && <TextField {...of("dailyResetTime")} control={{ type: "time" }} />}
    </Section>
  );
}
