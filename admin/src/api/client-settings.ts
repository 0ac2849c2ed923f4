/**
 * Settings that connect each client to this gateway: snippets to copy, with the gateway's address
 * and a key filled in.
 *
 * Pure. `docs/clients.md` describes the same settings, and names those that the test suite runs.
 * Snippets are not translated.
 */

export interface Snippet {
  /** Where the text belongs: a file, `shell`, a language, or a format (`curl`). */
  where: string;
  text: string;
}

export type Format = "native" | "responses" | "chat-compatible" | "alt-cli";

export interface Client {
  id: ClientId;
  name: string;
  /** The wire format that the snippets make it use. */
  format: Format;
  snippets: Snippet[];
}

export const CLIENT_IDS = [
  "claude-code",
  "codex",
  "gemini-cli",
  "opencode",
  "anthropic-sdk",
  "openai-sdk",
  "genai-sdk",
  "curl",
] as const;
export type ClientId = (typeof CLIENT_IDS)[number];

export interface Connection {
  /** `https://gateway.example:8080`, without a trailing slash. */
  base: string;
  /** The key to use, or a placeholder. */
  key: string;
  /** A model that the key can use, or a function that returns one for each format. */
  model: string | ModelOf;
}
type ModelOf = (format: Format) => string;
/** A connection with the one model that the snippets of a client name. */
interface Target extends Connection {
  model: string;
}

/** The placeholder for a key whose text is not known. */
export const KEY_PLACE = "sk-…";

/** The proxy's address for this browser: the page's host with the proxy's port, or its origin. */
export function proxyBase(
  page: { protocol: string; hostname: string; port: string; origin: string },
  proxy: { port: number; tls: boolean },
): string {
  const standard = page.protocol === "https:" ? "443" : "80";
  if ((page.port || standard) === String(proxy.port)) return page.origin;
  // The gateway's scheme, not the page's: a reverse proxy in front may add TLS to the page alone.
  const scheme = proxy.tls ? "https" : "http";
  return `${scheme}://${page.hostname}:${proxy.port}`;
}

/** Quotes for a POSIX shell. */
const sh = (text: string) =>
  /^[\w.:/@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

const claudeCode = ({ base, key }: Target): Snippet[] => [
  {
    where: "shell",
    text: `export ANTHROPIC_BASE_URL=${sh(base)}\nexport ANTHROPIC_AUTH_TOKEN=${sh(key)}\nclaude`,
  },
  {
    where: "~/.claude/settings.json",
    text: JSON.stringify({ env: { ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: key } }, null, 2),
  },
];

const codex = ({ base, key, model }: Target): Snippet[] => [
  {
    where: "~/.codex/config.toml",
    text: [
      `model = ${JSON.stringify(model)}`,
      'model_provider = "tollgate"',
      "",
      "[model_providers.tollgate]",
      'name = "tollgate"',
      `base_url = "${base}/v1"`,
      'wire_api = "responses"',
      'env_key = "TOLLGATE_KEY"',
    ].join("\n"),
  },
  { where: "shell", text: `export TOLLGATE_KEY=${sh(key)}\ncodex` },
];

const geminiCli = ({ base, key }: Target): Snippet[] => [
  {
    // Without this setting, a run without a terminal fails with "Invalid auth method selected".
    where: "~/.gemini/settings.json",
    text: JSON.stringify({ security: { auth: { selectedType: "gemini-api-key" } } }, null, 2),
  },
  {
    where: "shell",
    text: `export GOOGLE_GEMINI_BASE_URL=${sh(base)}\nexport GEMINI_API_KEY=${sh(key)}\ngemini`,
  },
];

const opencode = ({ base, key }: Target): Snippet[] => [
  {
    where: "opencode.json",
    text: JSON.stringify(
      {
        $schema: "https://opencode.ai/config.json",
        provider: {
          anthropic: { options: { baseURL: `${base}/v1`, apiKey: "{env:TOLLGATE_KEY}" } },
        },
      },
      null,
      2,
    ),
  },
  { where: "shell", text: `export TOLLGATE_KEY=${sh(key)}\nopencode` },
];

const anthropicSdk = ({ base, key, model }: Target): Snippet[] => [
  {
    where: "Python",
    text: [
      "import anthropic",
      "",
      `client = anthropic.Anthropic(base_url="${base}", api_key="${key}")`,
      "reply = client.messages.create(",
      `    model=${JSON.stringify(model)},`,
      "    max_tokens=200,",
      '    messages=[{"role": "user", "content": "Say hello."}],',
      ")",
      "print(reply.content[0].text)",
    ].join("\n"),
  },
  {
    where: "TypeScript",
    text: [
      'import Anthropic from "@anthropic-ai/sdk";',
      "",
      `const client = new Anthropic({ baseURL: "${base}", apiKey: "${key}" });`,
      "const reply = await client.messages.create({",
      `  model: ${JSON.stringify(model)},`,
      "  max_tokens: 200,",
      '  messages: [{ role: "user", content: "Say hello." }],',
      "});",
      "console.log(reply.content);",
    ].join("\n"),
  },
];

const openaiSdk = ({ base, key, model }: Target): Snippet[] => [
  {
    where: "Python",
    text: [
      "import openai",
      "",
      `client = openai.OpenAI(base_url="${base}/v1", api_key="${key}")`,
      `reply = client.responses.create(model=${JSON.stringify(model)}, input="Say hello.")`,
      "print(reply.output_text)",
    ].join("\n"),
  },
  {
    where: "TypeScript",
    text: [
      'import OpenAI from "openai";',
      "",
      `const client = new OpenAI({ baseURL: "${base}/v1", apiKey: "${key}" });`,
      "const reply = await client.chat.completions.create({",
      `  model: ${JSON.stringify(model)},`,
      '  messages: [{ role: "user", content: "Say hello." }],',
      "});",
      "console.log(reply.choices[0].message.content);",
    ].join("\n"),
  },
];

const genaiSdk = ({ base, key, model }: Target): Snippet[] => [
  {
    where: "Python",
    text: [
      "from google import genai",
      "",
      `client = genai.Client(api_key="${key}", http_options={"base_url": "${base}"})`,
      `reply = client.models.generate_content(model=${JSON.stringify(model)}, contents="Say hello.")`,
      "print(reply.text)",
    ].join("\n"),
  },
];

/** A small request of each format: its path and body. */
export function exampleRequest(
  format: Format,
  model: string,
  stream = false,
): { path: string; body: object } {
  const messages = [{ role: "user", content: "Say hello." }];
  const streamed = stream ? { stream } : {};
  switch (format) {
    case "native":
      return { path: "/v1/messages", body: { model, max_tokens: 200, messages, ...streamed } };
    case "responses":
      return { path: "/v1/responses", body: { model, input: "Say hello.", ...streamed } };
    case "chat-compatible":
      return { path: "/v1/chat/completions", body: { model, messages, ...streamed } };
    case "alt-cli": {
      const method = stream ? "streamGenerateContent?alt=sse" : "generateContent";
      const contents = [{ role: "user", parts: [{ text: "Say hello." }] }];
      return { path: `/v1beta/models/${encodeURIComponent(model)}:${method}`, body: { contents } };
    }
  }
}

/** A `curl` command for a request. It expects the key in the variable `TOLLGATE_KEY`. */
export function curlLine(to: {
  base: string;
  path: string;
  body: string;
  /** The fields of a form, in place of the body. */
  form?: { texts: [string, string][]; file: [string, string] };
  stream: boolean;
  native: boolean;
}): string {
  return [
    `curl ${to.stream ? "-N " : ""}${sh(to.base + to.path)}`,
    // In double quotes, so that the shell expands the variable.
    '-H "authorization: Bearer $TOLLGATE_KEY"',
    ...(to.form
      ? [
          // curl takes these as they are written, and reads no file.
          ...to.form.texts.map(([name, value]) => `--form-string ${sh(`${name}=${value}`)}`),
          `-F ${sh(`${to.form.file[0]}=@"${to.form.file[1]}"`)}`,
        ]
      : [
          "-H 'content-type: application/json'",
          ...(to.native ? ["-H 'anthropic-version: 2023-06-01'"] : []),
          `-d ${sh(to.body)}`,
        ]),
  ].join(" \\\n  ");
}

const curl = ({ base, key }: Target, modelOf: ModelOf): Snippet[] => {
  const formats = ["native", "responses", "chat-compatible", "alt-cli"] as const;
  return formats.map((format) => {
    const { path, body } = exampleRequest(format, modelOf(format));
    const text = [
      `curl ${sh(`${base}${path}`)}`,
      `-H ${sh(`authorization: Bearer ${key}`)}`,
      "-H 'content-type: application/json'",
      `-d ${sh(JSON.stringify(body))}`,
    ].join(" \\\n  ");
    return { where: format, text };
  });
};

const CLIENTS: Record<ClientId, [string, Format, (to: Target, modelOf: ModelOf) => Snippet[]]> = {
  "claude-code": ["Claude Code", "native", claudeCode],
  codex: ["Codex CLI", "responses", codex],
  "gemini-cli": ["Gemini CLI", "alt-cli", geminiCli],
  opencode: ["opencode", "native", opencode],
  "anthropic-sdk": ["Anthropic SDK", "native", anthropicSdk],
  "openai-sdk": ["OpenAI SDK", "responses", openaiSdk],
  "genai-sdk": ["Google GenAI SDK", "alt-cli", genaiSdk],
  curl: ["curl", "native", curl],
};

/** Every client with its settings for this connection. */
export function clients(to: Connection): Client[] {
  const { model } = to;
  const modelOf = typeof model === "string" ? () => model : model;
  return CLIENT_IDS.map((id) => {
    const [name, format, snippets] = CLIENTS[id];
    return { id, name, format, snippets: snippets({ ...to, model: modelOf(format) }, modelOf) };
  });
}

const DEFAULT_MODELS: Record<Format, string> = {
  native: "claude-sonnet-4-5",
  responses: "gpt-5",
  "chat-compatible": "gpt-5",
  "alt-cli": "gemini-2.5-flash",
};

/**
 * A model for the examples of a format: of an enabled provider of that format, else of the first
 * enabled provider, so that the copied request succeeds. If they list no model, or `providers` is
 * empty because the caller may not list them, it is a well-known model.
 */
export function exampleModel(
  format: Format,
  providers: readonly { providerType: string; isEnabled: boolean; allowedModels: string[] }[],
): string {
  const formatOf = (type: string) => (type === "native-auth" ? "native" : type) as Format;
  const enabled = providers.filter((one) => one.isEnabled);
  const provider = enabled.find((one) => formatOf(one.providerType) === format) ?? enabled[0];
  const named = provider?.allowedModels.find((model) => !model.endsWith("*"));
  return (
    named ??
    DEFAULT_MODELS[provider ? formatOf(provider.providerType) : format] ??
    DEFAULT_MODELS[format]
  );
}
