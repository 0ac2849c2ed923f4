/** The limits of a user or a key, as a section of a form. */
import type { ReactNode } from "react";
import {
  type Control,
  type FieldErrors,
  type FieldValues,
  type Path,
  type UseFormRegister,
  useWatch,
} from "react-hook-form";
import { useTranslation } from "react-i18next";
import { Field, Input, NumberInput, Section, Select } from "@/ui/field";
import { useFormat } from "@/ui/format";
import { type LimitValues, MONEY } from "./values";

interface Props<T extends FieldValues & LimitValues> {
  register: UseFormRegister<T>;
  control: Control<T>;
  errors: FieldErrors<T>;
  /** Additional fields of the section. */
  children?: ReactNode;
  /** The user's own limit, for keys. */
  most?: Partial<Record<string, string>>;
  /** The reason why the limits cannot be changed. */
  locked?: string;
}

export function LimitFields<T extends FieldValues & LimitValues>({
  register,
  control,
  errors,
  children,
  most,
  locked,
}: Props<T>) {
  const { t } = useTranslation();
  const { currency } = useFormat();
  const mode = useWatch({ control, name: "dailyResetMode" as Path<T> });
  const fault = (name: string) => errors[name]?.message as string | undefined;
  return (
    <Section
      title={t("people.limits")}
      help={locked ?? t("people.limitsHelp")}
      disabled={locked !== undefined}
    >
      {MONEY.map((name) => (
        <Field
          key={name}
          label={t(`people.${name}`)}
          unit={currency}
          error={fault(name)}
          help={most?.[name] && t("people.userLimit", { amount: most[name] })}
        >
          {(ids) => (
            <NumberInput
              {...ids}
              placeholder={t("people.noLimit")}
              {...register(name as Path<T>)}
            />
          )}
        </Field>
      ))}
      <Field
        label={t("people.limitConcurrentSessions")}
        error={fault("limitConcurrentSessions")}
        help={t("people.sessionsHelp")}
      >
        {(ids) => (
          <NumberInput
            {...ids}
            placeholder={t("people.noLimit")}
            {...register("limitConcurrentSessions" as Path<T>)}
          />
        )}
      </Field>
      {children}
      <Field
        label={t("people.dailyResetMode")}
        error={fault("dailyResetMode")}
        help={t(`people.reset.${mode === "rolling" ? "rolling" : "fixed"}Help`)}
      >
        {(ids) => (
          <Select
            {...ids}
            choices={[
              { value: "fixed", label: t("people.reset.fixed") },
              { value: "rolling", label: t("people.reset.rolling") },
            ]}
            {...register("dailyResetMode" as Path<T>)}
          />
        )}
      </Field>
      {mode !== "rolling" && (
        <Field label={t("people.dailyResetTime")} error={fault("dailyResetTime")}>
          {(ids) => <Input {...ids} type="time" {...register("dailyResetTime" as Path<T>)} />}
        </Field>
      )}
    </Section>
  );
}
