/**
 * Creates providers, users, rules and traffic of every kind, long names among them, so that every
 * page has content.
 */
import { ADMIN_KEY, startVendor } from "./vendor.mjs";

/** Realistic names. */
const LONG = {
  user: "Maximiliane-Charlotte von Hohenstein-Wittgenstein (data)",
  key: "nightly evaluation on the shared build server in Frankfurt",
  provider: "eu-central fallback through the corporate proxy",
  model: "ft:gpt-4o-mini-2024-07-18:acme-research-department:support-classifier:9xYzAbCd",
};

export async function furnish(gateway) {
  const providers = await addProviders(gateway);
  const people = await addPeople(gateway);
  await addRules(gateway);
  await traffic(gateway, people);
  await addSource(gateway);
  return { ...people, ...providers };
}

async function addSource({ action }) {
  const [{ id: providerId }] = await action("providers/getProviders");
  const { url } = await startVendor();
  const source = { providerId, kind: "anthropic", url, adminKey: ADMIN_KEY, isDaily: true };
  await action("reconciliation/saveInvoiceSource", source);
}

async function addProviders({ action, mockUrl }) {
  const provider = (fields) =>
    action("providers/addProvider", { url: mockUrl, key: "mock-key-0123456789", ...fields });
  await provider({
    name: "main",
    provider_type: "native",
    priority: 0,
    weight: 3,
    limit_daily_usd: 0.02,
  });
  const key = "second-key-0123456789";
  await provider({
    name: "second",
    provider_type: "native-auth",
    priority: 0,
    cost_multiplier: 0.8,
    key,
  });
  await provider({
    name: "converted",
    provider_type: "chat-compatible",
    priority: 1,
    group_tag: "default,team",
  });
  await provider({
    name: "asleep",
    provider_type: "alt-cli",
    priority: 2,
    is_enabled: false,
    note: "for emergencies",
  });
  const fragile = await provider({
    name: LONG.provider,
    provider_type: "responses",
    priority: 7,
    group_tag: "research,night",
    key: "fragile-key-0123456789",
    allowed_models: ["gpt-5", "gpt-5-mini", LONG.model],
    circuit_breaker_failure_threshold: 1,
    max_retry_attempts: 1,
  });
  return { fragile };
}

async function addPeople({ action }) {
  const ann = await action("users/addUser", {
    name: "ann",
    note: "Research",
    tags: ["lab"],
    limitDailyUsd: 5,
    limit5hUsd: 2,
    rpm: 600,
  });
  const bob = await action("users/addUser", {
    name: "bob",
    limitMonthlyUsd: 100,
    limitConcurrentSessions: 50,
    lockKeyLimits: true,
  });
  const eve = await action("users/addUser", {
    name: "eve",
    isEnabled: false,
    expiresAt: "2025-01-31",
  });
  const max = await action("users/addUser", {
    name: LONG.user,
    note: "On leave until spring; her service accounts go on running, ask the platform team before anything is changed here",
    tags: ["data-platform", "contractor", "frankfurt", "cost-centre-4711"],
    providerGroup: "research,night",
    limitTotalUsd: 1234.56,
  });
  const wang = await action("users/addUser", {
    name: "王小明",
    note: "上海研发中心",
    tags: ["平台组"],
  });
  const boss = await action("users/addUser", { name: "carla", role: "admin" });
  const cli = await action("keys/addKey", {
    userId: ann.user.id,
    name: "cli",
    canLoginWebUi: false,
    limitDailyUsd: 0.01,
  });
  await action("keys/addKey", { userId: max.user.id, name: LONG.key, expiresAt: "2027-06-30" });
  return { ann, bob, eve, max, wang, boss, cli };
}

async function addRules({ action }) {
  const word = (fields) => action("sensitive-words/createSensitiveWordAction", fields);
  await word({
    word: "project bluebird",
    matchType: "contains",
    description: "Not announced before June",
  });
  await word({
    word: "\\b\\d{3}-\\d{2}-\\d{4}\\b",
    matchType: "regex",
    description: "Social security numbers",
  });
  await word({ word: "内部机密", matchType: "contains" });
}

/** A session whose tools, then whose system text changed. */
async function coldCaches({ ask, direct }, key) {
  const written = (tokens) => ({ usage: { input: 20, output: 200, cache_write_5m: tokens } });
  await direct("script", [written(41_000), written(43_000), written(44_500)]);
  for (const [name, system] of [
    ["read", "Be brief."],
    ["write", "Be brief."],
    ["write", "Be brief. Today is Monday."],
  ]) {
    const tools = [{ name, input_schema: { type: "object" } }];
    const headers = { "x-session-id": "cold", "user-agent": "claude-cli/2.1.332 (external, cli)" };
    await ask(key, "claude-sonnet-4-5", "Refactor this.", { tools, system }, headers);
  }
}

async function traffic({ ask, direct }, { ann, bob, max, wang, cli }) {
  await direct("script?key=second-key-0123456789", [{ status: 500 }, { status: 529 }]);
  for (let index = 0; index < 14; index++) {
    await ask(
      ann.defaultKey.key,
      index % 3 ? "claude-sonnet-4-5" : "claude-haiku-4-5",
      `Question ${index}`,
    );
    await ask(
      bob.defaultKey.key,
      index % 4 ? "claude-sonnet-4-5" : "a-model-without-a-price",
      `Another ${index}`,
      {
        stream: index % 2 === 0,
      },
    );
  }
  await ask(cli.generatedKey);
  // One request uses nearly all of a day's money, and the next one exceeds it.
  await direct("script", [{ usage: { input: 1_500_000, output: 12_000 } }]);
  await ask(ann.defaultKey.key, "claude-sonnet-4-5", "A very long document");
  await ask(ann.defaultKey.key);
  await ask(wang.defaultKey.key, "claude-sonnet-4-5", "用一句话介绍一下这个网关。", {
    stream: true,
  });
  await ask(wang.defaultKey.key, "claude-sonnet-4-5", "这是内部机密。");
  await ask(bob.defaultKey.key, "claude-sonnet-4-5", "x", { messages: 3 });
  await coldCaches({ ask, direct }, bob.defaultKey.key);
  // Its circuit opens, and no provider is left.
  await direct("default?key=fragile-key-0123456789", { status: 500 });
  await ask(max.defaultKey.key, LONG.model);
  await ask(max.defaultKey.key, "gpt-5");
}
