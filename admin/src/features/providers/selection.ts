/**
 * Computes how the gateway would select a provider now, for a key's groups and a model. The steps
 * and their order are those of the gateway (docs/providers.md). Pure; it is only for display.
 */
import type { Schemas } from "@/api/client";
import { words } from "@/parts/values";

export type Provider = Schemas["ProviderRecord"];
export type Health = Schemas["ProviderHealth"];

export type Out = "disabled" | "group" | "model" | "circuit" | "cooldown" | "limit";
/** A provider has a cooldown, or each of its keys is disabled or has one. */
export function isResting(health: Health | undefined, now: number): boolean {
  const keys = health?.credentials ?? [];
  const until = health?.cooldownUntil ? new Date(health.cooldownUntil).getTime() : 0;
  return until > now || (keys.length > 0 && keys.every((key) => !key.isUsable));
}

/** The wire format of a request. */
export type ClientFormat = "native" | "responses" | "chat-compatible" | "alt-cli";
export interface Choice {
  provider: Provider;
  /** The reason why it is skipped; `undefined` = it can be selected. */
  out?: Out;
  /** Others of its tier use the request's own format, so it comes after them. */
  converts?: boolean;
  /** From 0 to 1: how often it comes first while its tier is used. */
  share: number;
}
export interface Tier {
  priority: number;
  choices: Choice[];
  /** Whether this is the first tier with a provider that can be selected. */
  first: boolean;
}

/** A record without groups is in the default one. */
const groupsOf = (text: string | null | undefined) => {
  const list = words(text);
  return list.length > 0 ? list : ["default"];
};

/** Whether a list contains a model: exactly, or by a trailing `*`. */
export const takes = (list: string[], model: string) =>
  list.some((name) => (name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : name === model));

export function supports(provider: Provider, model: string): boolean {
  if (model === "" || provider.allowedModels.length === 0) return true;
  return takes(provider.allowedModels, model) || model in provider.modelRedirects;
}

function reason(
  provider: Provider,
  groups: string[],
  model: string,
  health: Health | undefined,
  spent: boolean,
  now: number,
): Out | undefined {
  const tags = groupsOf(provider.groupTag);
  if (!groups.includes("*") && !groups.some((group) => tags.includes(group))) return "group";
  if (!provider.isEnabled) return "disabled";
  if (!supports(provider, model)) return "model";
  if (health?.state === "OPEN" && !health.halfOpen) return "circuit";
  if (isResting(health, now)) return "cooldown";
  if (spent) return "limit";
  return undefined;
}

export interface Asked {
  /** Comma-separated; empty = default, `*` = all. */
  group: string;
  model: string;
  /** Nothing = any format: no provider needs conversion. */
  format?: ClientFormat;
}

const formatOf = ({ providerType }: Provider) =>
  providerType === "native-auth" ? "native" : providerType;

/** Marks the providers of a tier that need conversion while others do not. */
function prefer(choices: Choice[], format: ClientFormat | undefined) {
  const own = ({ out, provider }: Choice) => !out && formatOf(provider) === format;
  if (format === undefined || !choices.some(own)) return;
  for (const choice of choices) if (!choice.out && !own(choice)) choice.converts = true;
}

export function selection(
  providers: Provider[],
  health: Health[],
  asked: Asked,
  now: number,
  spent: (provider: Provider) => boolean = () => false,
): Tier[] {
  const groups = groupsOf(asked.group);
  const tiers = new Map<number, Choice[]>();
  for (const provider of providers) {
    const out = reason(
      provider,
      groups,
      asked.model.trim(),
      health.find((one) => one.providerId === provider.id),
      spent(provider),
      now,
    );
    const tier = tiers.get(provider.priority) ?? [];
    tier.push({ provider, out, share: 0 });
    tiers.set(provider.priority, tier);
  }
  const ordered = [...tiers.entries()].sort(([a], [b]) => a - b);
  let found = false;
  return ordered.map(([priority, choices]) => {
    prefer(choices, asked.format);
    const drawn = (choice: Choice) => !choice.out && !choice.converts;
    const weight = choices.filter(drawn).reduce((sum, { provider }) => sum + provider.weight, 0);
    for (const choice of choices)
      choice.share = drawn(choice) && weight > 0 ? choice.provider.weight / weight : 0;
    choices.sort((a, b) => b.share - a.share || a.provider.name.localeCompare(b.provider.name));
    const first = !found && weight > 0;
    found ||= first;
    return { priority, choices, first };
  });
}
