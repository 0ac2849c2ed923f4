/**
 * Well-known vendors: their addresses, their formats there, and the names of their models. Pure.
 *
 * A provider that serves every model also answers for other vendors' models, without notice. So a
 * new provider proposes the patterns of its family.
 */
import type { TYPES, Values } from "./values";

type Type = (typeof TYPES)[number];

export interface Vendor {
  id: string;
  /** A proper name: the same in every language. */
  name: string;
  type: Type;
  url: string;
  /** Patterns of its models' names; a trailing `*` matches any ending. Empty: not known here. */
  models: string[];
  /** How requests go there, where it is not as the format has it. */
  way?: Partial<Pick<Values, "auth" | "query" | "path_template" | "custom_headers">>;
}

const CLAUDE = ["claude-*"];
/** As Bedrock names them, with or without the mark of several regions; short names by redirects. */
const BEDROCK = ["anthropic.claude-*", "us.anthropic.claude-*", "global.anthropic.claude-*"];
const OPENAI = ["gpt-*", "chatgpt-*", "codex-*", "o1*", "o3*", "o4*"];
const GEMINI = ["gemini-*"];
const MISTRAL = [
  "mistral-*",
  "ministral-*",
  "magistral-*",
  "codestral-*",
  "devstral-*",
  "pixtral-*",
  "open-*",
];
const ROUTED = [
  "anthropic/*",
  "openai/*",
  "google/*",
  "deepseek/*",
  "mistralai/*",
  "moonshotai/*",
  "qwen/*",
  "x-ai/*",
];

const vendor = (
  id: string,
  name: string,
  type: Type,
  url: string,
  models: string[],
  way?: Vendor["way"],
): Vendor => ({ id, name, type, url, models, ...(way ? { way } : {}) });

export const VENDORS: readonly Vendor[] = [
  vendor("anthropic", "Anthropic", "native", "https://api.anthropic.com", CLAUDE),
  vendor("openai", "OpenAI · Responses", "responses", "https://api.openai.com", OPENAI),
  vendor(
    "openai-chat",
    "OpenAI · Chat Completions",
    "chat-compatible",
    "https://api.openai.com",
    OPENAI,
  ),
  vendor("gemini", "Google Gemini", "alt-cli", "https://generativelanguage.googleapis.com", GEMINI),
  vendor("deepseek", "DeepSeek", "chat-compatible", "https://api.deepseek.com", ["deepseek-*"]),
  vendor("mistral", "Mistral", "chat-compatible", "https://api.mistral.ai", MISTRAL),
  vendor("moonshot", "Moonshot", "chat-compatible", "https://api.moonshot.ai", [
    "kimi-*",
    "moonshot-*",
  ]),
  vendor("qwen", "Qwen", "chat-compatible", "https://dashscope.aliyuncs.com/compatible-mode/v1", [
    "qwen*",
    "qwq-*",
  ]),
  vendor("xai", "xAI", "chat-compatible", "https://api.x.ai", ["grok-*"]),
  vendor("zai", "Z.ai", "chat-compatible", "https://api.z.ai/api/paas/v4", ["glm-*"]),
  vendor("openrouter", "OpenRouter", "chat-compatible", "https://openrouter.ai/api/v1", ROUTED),
  vendor(
    "azure-openai",
    "Azure OpenAI · v1",
    "responses",
    "https://YOUR-RESOURCE.openai.azure.com/openai/v1",
    OPENAI,
    { auth: "api-key" },
  ),
  vendor(
    "azure-openai-deployments",
    "Azure OpenAI · deployments",
    "chat-compatible",
    "https://YOUR-RESOURCE.openai.azure.com/openai",
    OPENAI,
    {
      auth: "api-key",
      path_template: "/deployments/{model}/{path}",
      query: "api-version = 2024-10-21",
    },
  ),
  vendor(
    "azure-foundry-claude",
    "Azure Foundry · Claude",
    "native",
    "https://YOUR-RESOURCE.services.ai.azure.com/anthropic",
    CLAUDE,
  ),
  vendor(
    "vertex-claude",
    "Google Vertex AI · Claude",
    "native",
    "https://aiplatform.googleapis.com/v1/projects/YOUR-PROJECT/locations/global/publishers/anthropic",
    CLAUDE,
    { auth: "gcp-service-account" },
  ),
  vendor(
    "vertex-gemini",
    "Google Vertex AI · Gemini",
    "alt-cli",
    "https://aiplatform.googleapis.com/v1/projects/YOUR-PROJECT/locations/global/publishers/google",
    GEMINI,
    { auth: "gcp-service-account" },
  ),
  vendor(
    "bedrock-claude",
    "Amazon Bedrock · Claude (Messages)",
    "native",
    "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic",
    BEDROCK,
    { auth: "aws-sigv4" },
  ),
  vendor(
    "bedrock-invoke",
    "Amazon Bedrock · Claude (InvokeModel)",
    "native",
    "https://bedrock-runtime.us-east-1.amazonaws.com",
    BEDROCK,
    { auth: "aws-sigv4" },
  ),
  vendor(
    "bedrock-converse",
    "Amazon Bedrock · Nova, Llama, … (Converse)",
    "native",
    "https://bedrock-runtime.us-east-1.amazonaws.com/converse",
    ["amazon.nova-*", "us.amazon.nova-*", "meta.*", "us.meta.*", "mistral.*", "cohere.*"],
    { auth: "aws-sigv4" },
  ),
  vendor(
    "bedrock-openai",
    "Amazon Bedrock · Chat Completions",
    "chat-compatible",
    "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
    ["openai.*"],
    { auth: "bearer" },
  ),
  vendor(
    "claude-on-aws",
    "Claude Platform on AWS",
    "native",
    "https://aws-external-anthropic.us-east-1.api.aws",
    CLAUDE,
    { custom_headers: "anthropic-workspace-id = YOUR-WORKSPACE" },
  ),
  vendor("ollama", "Ollama", "chat-compatible", "http://127.0.0.1:11434", []),
];

/** The models of a format's own vendor. Many vendors use the chat format, so it has no family. */
const FAMILY: Record<Type, string[]> = {
  native: CLAUDE,
  "native-auth": CLAUDE,
  responses: OPENAI,
  "chat-compatible": [],
  "alt-cli": GEMINI,
};

const hostOf = (url: string) => {
  try {
    return new URL(url.trim()).host;
  } catch {
    return "";
  }
};

/** The proposed models of a provider of this format at this address. */
export function proposed(type: string, url: string): string[] {
  const host = hostOf(url);
  const there = host === "" ? [] : VENDORS.filter((one) => hostOf(one.url) === host);
  const known = there.find((one) => one.type === type) ?? there[0];
  return known?.models ?? FAMILY[type as Type] ?? [];
}

const same = (a: string[], b: string[]) => a.join("\n") === b.join("\n");

/** The list after a change of format or address: the new proposal, unless the user chose models. */
export function follow(
  models: string[],
  before: [string, string],
  now: [string, string],
): string[] {
  return same(models, proposed(...before)) ? proposed(...now) : models;
}
