/** Reads and writes sensitive words and error rules. They take effect as soon as they are saved. */
import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { type BodyOf, call, callAny, type Operation, type Schemas } from "@/api/client";

export const MATCH_TYPES = ["contains", "exact", "regex"] as const;
export type MatchType = (typeof MATCH_TYPES)[number];
export const CATEGORIES = [
  "prompt_limit",
  "content_filter",
  "pdf_limit",
  "thinking_error",
  "parameter_error",
  "invalid_request",
  "cache_limit",
] as const;
export type Category = (typeof CATEGORIES)[number];

export type Word = Schemas["WordRecord"];

export interface Rule {
  id: number;
  pattern: string;
  matchType: MatchType;
  category: Category;
  description: string;
  /** A text, or a JSON object with `message` and maybe `type` and `code`. */
  overrideResponse: string | null;
  overrideStatusCode: number | null;
  appliesTo: "4xx" | "all";
  isEnabled: boolean;
  /** The rule with the lowest number is checked first. */
  priority: number;
  /** A built-in rule. */
  isDefault: boolean;
  /** A built-in rule that was changed here: upgrades do not change it. */
  isEdited: boolean;
  createdAt: string;
  updatedAt: string;
}

/** The gateway's reaction to an upstream error. */
export interface Trial {
  message: string;
  type: string | null;
  code: string | null;
  /** In the order of the checks; the first one decides. */
  matches: Rule[];
  class: string;
  reason: string;
  /** The error that a client gets; `null` if the next provider gets the request. */
  statusCode: number | null;
  /** The body by format; empty if the next provider gets the request. */
  replies: Record<string, unknown>;
}

export const keys = {
  words: ["rules", "words"],
  stats: ["rules", "words", "stats"],
  errors: ["rules", "errors"],
} as const;

export const words = queryOptions({
  queryKey: keys.words,
  queryFn: ({ signal }) => call("actions/sensitive-words/listSensitiveWords", {}, signal),
});

export const wordStats = queryOptions({
  queryKey: keys.stats,
  queryFn: ({ signal }) => call("actions/sensitive-words/getCacheStats", {}, signal),
});

export const errorRules = queryOptions({
  queryKey: keys.errors,
  queryFn: ({ signal }) => callAny<Rule[]>("ui/error-rules/list", {}, signal),
});

/** Built-in rules that were removed and can be restored. */
export const removedRules = queryOptions({
  queryKey: [...keys.errors, "removed"],
  queryFn: ({ signal }) => callAny<Rule[]>("ui/error-rules/listRemoved", {}, signal),
});

/** Writes a word and reads the words again. */
function useWordChange<O extends Operation>(operation: O) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: BodyOf<O>) => call(operation, body),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.words }),
  });
}

/** The same for error rules. Their routes are for the web UI and not in the OpenAPI document. */
function useRuleChange<In, Out>(operation: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (body: In) => callAny<Out>(`ui/error-rules/${operation}`, body),
    onSuccess: () => cache.invalidateQueries({ queryKey: keys.errors }),
  });
}

export type WordFields = Required<
  Omit<BodyOf<"actions/sensitive-words/createSensitiveWordAction">, "description">
> & {
  description: string;
};
export type RuleFields = Omit<Rule, "id" | "isDefault" | "isEdited" | "createdAt" | "updatedAt">;

export const useUpdateWord = () =>
  useWordChange("actions/sensitive-words/updateSensitiveWordAction");
export const useDeleteWord = () =>
  useWordChange("actions/sensitive-words/deleteSensitiveWordAction");
export const useRefreshWords = () => useWordChange("actions/sensitive-words/refreshCacheAction");

export const useUpdateRule = () =>
  useRuleChange<{ id: number } & Partial<RuleFields>, Rule>("update");
export const useDeleteRule = () => useRuleChange<{ id: number }, undefined>("delete");
export const useRestoreRule = () => useRuleChange<{ id: number }, Rule>("restore");
export const useTrial = () =>
  useMutation({
    mutationFn: (body: { message: string; statusCode: number }) =>
      callAny<Trial>("ui/error-rules/test", body),
  });
