/** Creates and edits a provider, in sections; only the first is required. */
import { useEffect, useRef } from "react";
import type { UseFormReturn } from "react-hook-form";
import { useTranslation } from "react-i18next";
import { ApiError, call } from "@/api/client";
import { showFault } from "@/api/form";
import * as queries from "@/api/queries";
import { useEditor } from "@/parts/editor";
import { FeatureFields } from "@/parts/feature-fields";
import { FormDrawer } from "@/parts/form";
import { Section } from "@/ui/field";
import type { Asked } from "./api";
import { Basics } from "./form-basics";
import { Cost, Failures, Further, Selection } from "./form-sections";
import { Keys } from "./keys-field";
import type { Provider } from "./selection";
import { body, copied, sendsNone, UNITS, type Values, values } from "./values";
import { follow, proposed } from "./vendors";

interface Props {
  /** The edited provider. */
  provider?: Provider;
  /** The provider that a new one copies, without its credential. */
  like?: Provider;
  onClose: () => void;
}

export function ProviderForm({ provider, like, onClose }: Props) {
  const { t } = useTranslation();
  const first = () =>
    provider ? values(provider) : like ? copied(like, t("providers.copyName", like)) : fresh();
  const editor = useEditor({
    values: first,
    body,
    update:
      provider &&
      ((changed) =>
        call("actions/providers/editProvider", { providerId: provider.id, ...changed })),
    create: (sent) => call("actions/providers/addProvider", { key: unsaid(sent.auth), ...sent }),
    rereads: [queries.keys.providers, queries.keys.health],
    saved: ({ name }) => (provider ? t("ui.saved") : t("providers.added", { name })),
  });
  const { form } = editor;
  useProposedModels(form, provider === undefined && like === undefined);
  const asked = () => {
    const { key, ...all } = body(form.getValues());
    const { url, provider_type, auth, custom_headers, query, path_template, proxy_url } = all;
    // What was removed from the form, such as a stored proxy, is left out of the test too.
    const way = { url, provider_type, auth, custom_headers, query, path_template, proxy_url };
    const typed = { ...way, ...(key || !provider ? { key: key ?? unsaid(auth) } : {}) };
    return { ...typed, ...(provider ? { providerId: provider.id } : {}) } as Asked;
  };
  const onFault = (error: unknown) =>
    showFault(error, form.setError, (name) => name in form.getValues()).length > 0 &&
    error instanceof ApiError;
  const test = { asked, onFault };
  return (
    <FormDrawer
      {...editor}
      title={provider ? t("providers.edit", { name: provider.name }) : t("providers.add")}
      description={provider ? undefined : t("providers.addHelp")}
      onClose={onClose}
      submit={provider ? t("ui.save") : t("providers.add")}
      units={UNITS}
    >
      <Basics form={form} provider={provider} isCopy={like !== undefined} test={test} />
      {!sendsNone(form.watch("auth")) && <Keys form={form} />}
      <Selection form={form} test={test} />
      <Section title={t("features.title")} help={t("features.ofProvider")}>
        <FeatureFields form={form} allowed="allowed_features" denied="denied_features" ofProvider />
      </Section>
      <Cost form={form} />
      <Failures form={form} />
      <Further form={form} />
    </FormDrawer>
  );
}

/** The credential of a new provider if none was typed: there must be one, also if it is not sent. */
const unsaid = (auth: string | undefined) => (sendsNone(auth) ? "none" : "");

/** Proposes the models of a new provider's family until the user selects others. */
function useProposedModels(form: UseFormReturn<Values>, isNew: boolean) {
  const [type, url] = form.watch(["provider_type", "url"]);
  const before = useRef<[string, string]>([type, url]);
  useEffect(() => {
    if (!isNew) return;
    const models = form.getValues("allowed_models");
    const next = follow(models, before.current, [type, url]);
    before.current = [type, url];
    if (next !== models) form.setValue("allowed_models", next);
  }, [form, isNew, type, url]);
}

/** A new provider, with the model names of its family. */
function fresh(): Values {
  const empty = values(undefined);
  return { ...empty, allowed_models: proposed(empty.provider_type, empty.url) };
}
