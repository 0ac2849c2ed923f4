/** The parts of a cost with a price of their own: passes over other models, and tools. */
import { useTranslation } from "react-i18next";
import { count, exactMoney, useFormat } from "@/ui/format";
import { Cell, Head } from "./cells";
import { type Entry, partOf, tokensIn } from "./entry";

export function PartsOfCost({ parts, model }: { parts: Entry["parts"]; model: string }) {
  const { t } = useTranslation();
  const format = useFormat();
  if (parts.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls needs the keyboard
    <section tabIndex={0} aria-label={t("logs.parts.title")} className="overflow-x-auto">
      <table className="w-full text-sm" aria-label={t("logs.parts.title")}>
        <thead className="text-xs text-faint">
          <tr>
            <Head>{t("logs.parts.part")}</Head>
            <Head>{t("logs.parts.model")}</Head>
            <Head right>{t("logs.parts.used")}</Head>
            <Head right>{t("logs.parts.cost")}</Head>
          </tr>
        </thead>
        <tbody>
          {parts.map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two parts may be equal
            <tr key={index}>
              <Cell>{t(`logs.parts.kinds.${partOf(part.kind)}`)}</Cell>
              <Cell>{part.model ?? model}</Cell>
              <Cell right>
                {part.quantity > 0
                  ? t("logs.parts.calls", { number: count(part.quantity, format) })
                  : t("logs.parts.tokens", {
                      input: count(tokensIn(part), format),
                      output: count(part.outputTokens, format),
                    })}
              </Cell>
              <Cell right>
                {part.free
                  ? t("logs.parts.free")
                  : part.costUsd === null
                    ? t("logs.parts.unpriced")
                    : exactMoney(part.costUsd, format)}
              </Cell>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
