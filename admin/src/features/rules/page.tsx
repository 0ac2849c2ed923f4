/**
 * Sensitive words, which requests must not contain, and error rules, which classify upstream
 * errors.
 */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { FlaskConical, Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Page } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import type { RuleFields } from "./api";
import { ErrorRules } from "./errors";
import { Tester } from "./tester";
import { Words } from "./words";

export function RulesPage() {
  const { t } = useTranslation();
  const { view = "words" } = useSearch({ from: "/shell/rules" });
  const navigate = useNavigate({ from: "/rules" });
  const [adding, setAdding] = useState<Partial<RuleFields> | null>(null);
  const [testing, setTesting] = useState(false);
  const add = (draft: Partial<RuleFields>) => {
    void navigate({ search: (old) => ({ ...old, id: undefined }), replace: true });
    setAdding(draft);
  };
  return (
    <Page
      title={t("nav.rules")}
      full
      actions={
        <>
          {view === "errors" && (
            <Button
              icon={<FlaskConical className="size-4" aria-hidden />}
              onClick={() => setTesting(true)}
            >
              {t("rules.tester.action")}
            </Button>
          )}
          <Button
            variant="primary"
            icon={<Plus className="size-4" aria-hidden />}
            onClick={() => add({})}
          >
            {view === "errors" ? t("rules.errors.add") : t("rules.words.add")}
          </Button>
        </>
      }
    >
      <Tabs
        label={t("nav.rules")}
        full
        value={view}
        onChange={(id) => {
          setAdding(null);
          void navigate({ search: { view: id === "errors" ? "errors" : undefined } });
        }}
        tabs={[
          {
            id: "words",
            label: t("rules.words.title"),
            content: (
              <Words
                adding={adding !== null}
                onAdd={() => add({})}
                onAdded={() => setAdding(null)}
              />
            ),
          },
          {
            id: "errors",
            label: t("rules.errors.title"),
            content: (
              <ErrorRules adding={adding} onAdd={() => add({})} onAdded={() => setAdding(null)} />
            ),
          },
        ]}
      />
      {testing && (
        <Tester
          onClose={() => setTesting(false)}
          onMakeRule={(draft) => {
            setTesting(false);
            add(draft);
          }}
        />
      )}
    </Page>
  );
}
