/** Which models cost nothing because nobody has said what they cost. Mirrors how the gateway looks a price up. */

interface Provider {
  isEnabled: boolean;
  allowedModels: string[];
  modelRedirects: Record<string, string>;
}

/**
 * Models that enabled providers offer by name and that have no price, neither under the name that is asked for nor under the
 * one that the provider is asked for. Patterns (`claude-*`) name no model.
 */
export function offeredUnpriced(priced: ReadonlySet<string>, providers: Provider[]): string[] {
  const missing = new Set<string>();
  for (const provider of providers) {
    if (!provider.isEnabled) continue;
    for (const model of [...provider.allowedModels, ...Object.keys(provider.modelRedirects)]) {
      const sent = provider.modelRedirects[model] ?? model;
      if (!model.endsWith("*") && !priced.has(model) && !priced.has(sent)) missing.add(model);
    }
  }
  return [...missing].sort();
}

/** Models of the usage log that have no price under their own name: those whose requests may be without a cost. */
export function usedWithoutEntry(priced: ReadonlySet<string>, used: string[]): string[] {
  return used.filter((model) => !priced.has(model)).sort();
}
