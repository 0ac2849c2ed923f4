/** Fields of price entries that no request is charged by, sorted by their number of models. */
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
