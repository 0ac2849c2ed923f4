/** An error rule as form values (all text) and as the gateway's record. */
import type { RuleFields } from "./api";

export interface RuleForm
  extends Omit<RuleFields, "overrideResponse" | "overrideStatusCode" | "priority"> {
  overrideResponse: string;
  overrideStatusCode: string;
  priority: string;
}

export const NEW_RULE: RuleFields = {
  pattern: "",
  matchType: "contains",
  category: "invalid_request",
  description: "",
  overrideResponse: null,
  overrideStatusCode: null,
  appliesTo: "4xx",
  isEnabled: true,
  priority: 0,
};

export function formOf(rule: RuleFields): RuleForm {
  const { pattern, matchType, category, description, appliesTo, isEnabled } = rule;
  return {
    pattern,
    matchType,
    category,
    description,
    appliesTo,
    isEnabled,
    overrideResponse: rule.overrideResponse ?? "",
    overrideStatusCode: rule.overrideStatusCode?.toString() ?? "",
    priority: String(rule.priority),
  };
}

/** Empty fields become `null`, and 0 for the priority. */
export function bodyOf(form: RuleForm): RuleFields {
  const none = (text: string) => text.trim() === "";
  return {
    ...form,
    overrideResponse: none(form.overrideResponse) ? null : form.overrideResponse.trim(),
    overrideStatusCode: none(form.overrideStatusCode) ? null : Number(form.overrideStatusCode),
    priority: none(form.priority) ? 0 : Number(form.priority),
  };
}
