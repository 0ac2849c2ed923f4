/** Which providers a request would be offered to now, without sending it. */
import { useTranslation } from "react-i18next";
import type { Schemas } from "@/api/client";
import { Notice } from "@/ui/status";
import { SelectionChain } from "./decisions";

export function Selection({ found }: { found: Schemas["SelectionRecord"] }) {
  const { t } = useTranslation();
  return (
    <div className="space-y-4">
      {found.statusCode !== null && (
        <Notice tone="bad">
          {t("logs.chain.wouldBeRefused", { status: found.statusCode })} {found.errorMessage}
        </Notice>
      )}
      <SelectionChain chain={found.decisionChain} />
    </div>
  );
}
