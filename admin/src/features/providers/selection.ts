/**
 * How the gateway would choose among the providers now, for a key's groups and a model: the same
 * steps and order as the gateway's own (see the product's documentation of selection). Pure; only
 * for showing, nothing is decided here.
 */
import type { Schemas } from "@/api/client";

export type Provider = Schemas["ProviderRecord"];
export type Health = Schemas["ProviderHealth"];

export type Out = "disabled" | "group" | "model" | "circuit" | "resting" | "limit";
/** The wire format of a request. */
export type ClientFormat = "native" | "responses" | "chat-compatible" | "alt-cli";
export interface Choice {
  provider: Provider;
  /** Why it is passed over; `undefined` = it can be chosen. */
  out?: Out;
  /** Others of its tier speak the request's own format: it is asked after them. */
  converts?: boolean;
  /** 0..1: how often it is taken first, while its tier is the one in turn. */
  share: number;
}
export interface Tier {
  priority: number;
  choices: Choice[];
  /** The first tier with anybody in it is asked first. */
  first: boolean;
}

const words = (text: string | null | undefined) => {
  const list = (text ?? "")
    .split(",")
    .map((word) => word.trim())
    .filter(Boolean);
  return list.length > 0 ? list : ["default"];
};

/** Whether a list of names takes a model: exactly, or by a trailing `*`. */
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
  const tags = words(provider.groupTag);
  if (!groups.includes("*") && !groups.some((group) => tags.includes(group))) return "group";
  if (!provider.isEnabled) return "disabled";
  if (!supports(provider, model)) return "model";
  if (health?.state === "OPEN" && !health.halfOpen) return "circuit";
  if (health?.cooldownUntil && new Date(health.cooldownUntil).getTime() > now) return "resting";
  if (spent) return "limit";
  return undefined;
}

export interface Asked {
  /** Comma-separated; empty = default, `*` = all. */
  group: string;
  model: string;
  /** Nothing = whichever: no provider needs conversion. */
  format?: ClientFormat;
}

const formatOf = ({ providerType }: Provider) =>
  providerType === "native-auth" ? "native" : providerType;

/** Sets aside those of a tier that need conversion while others do not. */
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
  const groups = words(asked.group);
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
