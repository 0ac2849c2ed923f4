/** One entry of the audit log: actor, time, address, and the record before and after. */
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/button";
import { Id } from "@/ui/code";
import { cx } from "@/ui/cx";
import { Panel } from "@/ui/dialog";
import { exactTime, useFormat } from "@/ui/format";
import { Facts } from "@/ui/page";
import type { Entry } from "./api";
import { diff, kindOf, type Line } from "./diff";

export function EntryPanel({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const { t } = useTranslation();
  const format = useFormat();
  const [all, setAll] = useState(false);
  const lines = diff(entry.before, entry.after);
  const changed = lines.filter((line) => line.kind !== "same");
  const same = lines.length - changed.length;
  const kind = kindOf(entry);
  const title = kind === "created" || kind === "deleted" ? t(`audit.${kind}`) : t("audit.changes");
  return (
    <Panel
      open
      onClose={onClose}
      title={<span className="font-mono text-sm">{entry.action}</span>}
      description={entry.target}
      width="sm:max-w-2xl"
    >
      <div className="space-y-5">
        <Facts
          facts={[
            [t("audit.when"), exactTime(new Date(entry.happenedAt), format)],
            [t("audit.actor"), entry.actor],
            [t("audit.target"), <Id key="target" value={entry.target} />],
            [
              t("audit.address"),
              entry.clientAddress ? <Id key="address" value={entry.clientAddress} /> : "—",
            ],
            [t("audit.entry"), <Id key="id" value={String(entry.id)} />],
          ]}
        />
        <section>
          <div className="mb-2 flex items-center gap-2">
            <h3 className="flex-1">{title}</h3>
            {same > 0 && (
              <Button size="sm" variant="ghost" aria-pressed={all} onClick={() => setAll(!all)}>
                {all ? t("audit.hideSame") : t("audit.showSame", { count: same })}
              </Button>
            )}
          </div>
          {lines.length === 0 ? (
            <p className="text-sm text-quiet">{t("audit.noRecord")}</p>
          ) : changed.length === 0 && !all ? (
            <p className="text-sm text-quiet">{t("audit.nothingChanged")}</p>
          ) : (
            <Lines
              lines={all ? lines : changed}
              hasBefore={entry.before != null}
              hasAfter={entry.after != null}
            />
          )}
        </section>
      </div>
    </Panel>
  );
}

function Lines({
  lines,
  hasBefore,
  hasAfter,
}: {
  lines: Line[];
  hasBefore: boolean;
  hasAfter: boolean;
}) {
  const { t } = useTranslation();
  const head = "border-b bg-sunken px-3 py-1.5 text-left text-xs font-medium text-quiet";
  return (
    <div className="overflow-x-auto rounded-lg border border-line">
      <table className="w-full border-separate border-spacing-0 text-sm">
        <thead>
          <tr>
            <th scope="col" className={head}>
              {t("audit.field")}
            </th>
            {hasBefore && (
              <th scope="col" className={head}>
                {t("audit.before")}
              </th>
            )}
            {hasAfter && (
              <th scope="col" className={head}>
                {t("audit.after")}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.path} className={cx("align-top", line.kind === "same" && "text-faint")}>
              <th
                scope="row"
                className="border-b px-3 py-1.5 text-left text-xs font-normal break-all text-quiet"
              >
                {line.path}
              </th>
              {hasBefore && (
                <Value
                  text={line.before}
                  tone={line.kind === "same" || !hasAfter ? undefined : "bad"}
                />
              )}
              {hasAfter && (
                <Value
                  text={line.after}
                  tone={line.kind === "same" || !hasBefore ? undefined : "good"}
                />
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** `bad`: removed; `good`: added. The column's heading has the same meaning in words. */
function Value({ text, tone }: { text: string | undefined; tone: "bad" | "good" | undefined }) {
  return (
    <td className="max-w-64 border-b px-3 py-1.5 font-mono text-xs">
      {text === undefined ? (
        <span className="text-faint">—</span>
      ) : (
        <span
          className={cx(
            "rounded px-1 break-words whitespace-pre-wrap",
            tone === "bad" && "bg-bad-soft text-bad line-through decoration-bad/40",
            tone === "good" && "bg-good-soft text-good",
          )}
        >
          {text === "" ? "\u00a0" : text}
        </span>
      )}
    </td>
  );
}
