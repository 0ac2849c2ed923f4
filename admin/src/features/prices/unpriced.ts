/** Finds models without a price. Looks prices up as the gateway does. */

interface Provider {
  isEnabled: boolean;
  allowedModels: string[];
  modelRedirects: Record<string, string>;
}

/** `-latest`, `-2025-09-29`, `-20250929` and `@20250929` at a name's end. */
const DATED =
  /(?:-latest|-20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])|[-@]20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$/;

/**
 * Whether a model has a price: under its name, its public name, or either of them without a date.
 */
export function isPriced(priced: ReadonlySet<string>, model: string): boolean {
  const names = [model, model.replace(DATED, "")].filter((name) => name !== "");
  return names.some((name) => priced.has(name) || priced.has(`gemini/${name}`));
}

/**
 * Models that enabled providers list by name and that have no price, neither under the requested
 * name nor under the name that is sent to the provider. Patterns (`claude-*`) are skipped.
 */
export function offeredUnpriced(priced: ReadonlySet<string>, providers: Provider[]): string[] {
  const missing = new Set<string>();
  for (const provider of providers) {
    if (!provider.isEnabled) continue;
    for (const model of [...provider.allowedModels, ...Object.keys(provider.modelRedirects)]) {
      const sent = provider.modelRedirects[model] ?? model;
      if (!model.endsWith("*") && !isPriced(priced, model) && !isPriced(priced, sent))
        missing.add(model);
    }
  }
  return [...missing].sort();
}

/** Models of the usage log without a price under their name: their requests may have no cost. */
export function usedWithoutEntry(priced: ReadonlySet<string>, used: string[]): string[] {
  return used.filter((model) => !isPriced(priced, model)).sort();
}

type MoneyLimits = Record<
  | "limit5hUsd"
  | "dailyQuota"
  | "limitDailyUsd"
  | "limitWeeklyUsd"
  | "limitMonthlyUsd"
  | "limitTotalUsd",
  number | null
>;
const MONEY = [
  "limit5hUsd",
  "dailyQuota",
  "limitDailyUsd",
  "limitWeeklyUsd",
  "limitMonthlyUsd",
  "limitTotalUsd",
] as const;

/**
 * Whether a user or one of the user's keys has a money limit, which requests without a price pass.
 */
export function hasMoneyLimit(
  user: Partial<MoneyLimits> & { keys: Partial<MoneyLimits>[] },
): boolean {
  return [user, ...user.keys].some((holder) =>
    MONEY.some((name) => typeof holder[name] === "number"),
  );
}

/** Fields that no request is charged by, sorted by their number of models. */
export function modelsByField(
  prices: { unapplied: string[] }[],
): { field: string; models: number }[] {
  const counts = new Map<string, number>();
  for (const { unapplied } of prices)
    for (const field of unapplied) counts.set(field, (counts.get(field) ?? 0) + 1);
  return [...counts]
    .map(([field, models]) => ({ field, models }))
    .sort((a, b) => b.models - a.models || a.field.localeCompare(b.field));
}
