/** Cells of patterns, match types and categories. */
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import { CATEGORIES, type Category, MATCH_TYPES, type MatchType } from "./api";

/** A word or pattern, with its blanks. */
export function Pattern({ text }: { text: string }) {
  return (
    <span className="block truncate font-mono text-xs whitespace-pre" title={text}>
      {text}
    </span>
  );
}

/** The match type as text; an unknown one is shown unchanged. */
export function useMatchType() {
  const { t } = useTranslation();
  return useCallback(
    (name: string) =>
      MATCH_TYPES.includes(name as MatchType) ? t(`rules.matches.${name as MatchType}`) : name,
    [t],
  );
}

export function useCategory() {
  const { t } = useTranslation();
  return useCallback(
    (name: string) =>
      CATEGORIES.includes(name as Category) ? t(`rules.categories.${name as Category}`) : name,
    [t],
  );
}

/** Choices for a form. */
export function useMatchTypes() {
  const { t } = useTranslation();
  return MATCH_TYPES.map((value) => ({ value, label: t(`rules.matches.${value}`) }));
}
