/**
 * Every page, panel, form, dialog and menu that axe checks and `npm run shots` pictures. Each is
 * opened by the texts of the selected language. `path` may depend on data that `furnish` created.
 * Those with `as` are opened with that user's key and come last; the administrator opens the
 * others.
 */
import { readFileSync } from "node:fs";

/** The texts of a language: `t("nav.people")`. */
export function words(language = "en") {
  const catalogue = JSON.parse(
    readFileSync(new URL(`../src/i18n/${language}.json`, import.meta.url), "utf8"),
  );
  return (key, values = {}) => {
    const text = key.split(".").reduce((tree, name) => tree?.[name], catalogue);
    if (typeof text !== "string") throw new Error(`no text for ${key} in ${language}`);
    return text.replace(/{{(\w+)}}/g, (_, name) => values[name]);
  };
}

const row = (page, text) => page.locator("tbody tr[data-row]").filter({ hasText: text }).first();
const press = (page, name) => page.getByRole("button", { name, exact: true }).first().click();
const sees = (page, text) => page.getByText(text, { exact: true }).first().waitFor();

const today = new Date().toISOString().slice(0, 10);

export const PAGES = [
  { name: "overview", path: "/dashboard" },
  { name: "palette", path: "/dashboard", open: (page) => page.keyboard.press("Control+k") },
  {
    name: "account",
    path: "/dashboard",
    wide: true,
    open: (page, t) => press(page, t("app.account")),
  },
  { name: "menu", path: "/dashboard", narrow: true, open: (page, t) => press(page, t("app.menu")) },
  { name: "logs", path: "/logs" },
  { name: "logs-columns", path: "/logs", open: (page, t) => press(page, t("ui.columns")) },
  {
    name: "logs-none",
    path: "/logs?model=no-such-model&failed=true&from=2026-01-01",
    open: (page, t) => sees(page, t("logs.noMatch")),
  },
  {
    name: "logs-request",
    path: "/logs?failed=true",
    open: async (page, t) => {
      await row(page, "ft:gpt-4o-mini").click();
      await sees(page, t("logs.decisions"));
      await sees(page, t("logs.tokensAndCost"));
    },
  },
  {
    name: "logs-cost",
    path: "/logs",
    open: async (page, t) => {
      await row(page, "claude-haiku-4-5").click();
      await sees(page, t("logs.costs.total"));
    },
  },
  {
    name: "logs-cold",
    path: "/logs?session=cold",
    open: async (page, t) => {
      await row(page, "claude-sonnet-4-5").click();
      await page.getByText(t("missCauses.system")).first().waitFor();
    },
  },
  {
    name: "logs-curl",
    path: "/logs",
    open: async (page, t) => {
      await row(page, "claude-haiku-4-5").click();
      await press(page, t("logs.asCurl"));
      await sees(page, t("logs.curlOwn"));
    },
  },
  { name: "sessions", path: "/sessions" },
  {
    name: "sessions-session",
    path: "/sessions",
    open: async (page, t) => {
      await page.locator("tbody tr[data-row]").first().click();
      await sees(page, t("sessions.inOrder"));
    },
  },
  {
    name: "sessions-messages",
    path: "/sessions",
    open: async (page, t) => {
      await row(page, "王小明").click();
      await page.getByRole("tab", { name: t("sessions.messages") }).click();
      await sees(page, t("sessions.asked"));
    },
  },
  { name: "playground", path: ({ ann }) => `/playground?key=${ann.defaultKey.id}` },
  {
    name: "playground-reply",
    path: ({ bob }) => `/playground?key=${bob.defaultKey.id}&model=claude-haiku-4-5`,
    open: async (page, t) => {
      await page.getByLabel(t("playground.prompt"), { exact: true }).fill("Say hello.");
      await page.getByRole("button", { name: t("playground.send"), exact: true }).click();
      await sees(page, t("logs.costs.total"));
    },
  },
  {
    name: "playground-endpoint",
    path: ({ bob }) => `/playground?key=${bob.defaultKey.id}&endpoint=transcription`,
    open: async (page, t) => {
      await page.getByRole("button", { name: t("playground.send"), exact: true }).click();
      await page.getByText(t("playground.refused.file")).waitFor();
      await page.getByRole("button", { name: t("logs.asCurl"), exact: true }).click();
    },
  },
  {
    name: "playground-batch",
    path: ({ bob }) =>
      `/playground?key=${bob.defaultKey.id}&endpoint=message_batch&model=claude-haiku-4-5`,
    open: async (page, t) => {
      const text = page.getByLabel(t("playground.text"), { exact: true });
      await text.fill("Say hello.\nSay goodbye.");
      await page.getByRole("button", { name: t("playground.send"), exact: true }).click();
      await sees(page, "request-2");
    },
  },
  {
    name: "playground-json",
    path: ({ bob }) => `/playground?key=${bob.defaultKey.id}&format=responses`,
    open: async (page, t) => {
      await page.getByRole("tab", { name: "JSON" }).click();
      await page
        .getByLabel(t("playground.json"), { exact: true })
        .fill('{\n  "model": "gpt-5",\n  "input": \n}');
      await page.getByRole("button", { name: t("logs.asCurl"), exact: true }).click();
      await page.getByText(t("playground.badJson", { line: 4, column: 1 })).waitFor();
    },
  },
  { name: "connect", path: "/connect" },
  { name: "connect-gemini", path: "/connect?client=gemini-cli" },
  { name: "connect-curl", path: "/connect?client=curl" },
  { name: "people", path: "/people" },
  { name: "people-keys", path: "/people?view=keys" },
  {
    name: "people-batch",
    path: "/people?view=keys",
    open: async (page, t) => {
      await page.getByLabel(t("ui.pickAll")).check();
      const counted = (name) => new RegExp(t(name, { count: "\\d+" }));
      await page.getByRole("button", { name: counted("people.batchEdit_other") }).click();
      await page.getByRole("dialog", { name: counted("people.batchTitle_other") }).waitFor();
    },
  },
  {
    name: "people-user",
    path: ({ ann }) => `/people?user=${ann.user.id}&key=${ann.defaultKey.id}`,
    open: (page, t) => sees(page, t("people.used")),
  },
  {
    name: "people-long",
    path: ({ max }) => `/people?user=${max.user.id}`,
    open: (page, t) => sees(page, t("people.used")),
  },
  {
    name: "people-form",
    path: "/people",
    open: async (page, t) => {
      await press(page, t("people.newUser"));
      await page.getByRole("textbox", { name: t("people.name"), exact: true }).waitFor();
    },
  },
  {
    name: "people-form-limits",
    path: "/people",
    open: async (page, t) => {
      await press(page, t("people.newUser"));
      await page.getByText(t("people.lockKeyLimitsHelp")).scrollIntoViewIfNeeded();
    },
  },
  {
    name: "people-form-features",
    path: "/people",
    open: async (page, t) => {
      await press(page, t("people.newUser"));
      await page.getByRole("button", { name: t("features.presets.hosted_tools") }).click();
      await page.getByText(t("features.names")).click();
      await page.getByText(t("features.of.web_search")).scrollIntoViewIfNeeded();
    },
  },
  {
    name: "people-key-features",
    path: ({ ann }) => `/people?user=${ann.user.id}`,
    open: async (page, t) => {
      await press(page, t("people.addKey"));
      const form = page.getByRole("dialog").last();
      await form.getByRole("button", { name: t("features.presets.unpriced_tools") }).click();
      await form.getByText(t("features.names")).scrollIntoViewIfNeeded();
    },
  },
  {
    name: "people-refused",
    path: ({ ann }) => `/people?user=${ann.user.id}`,
    open: async (page, t) => {
      await press(page, t("people.addKey"));
      const form = page.getByRole("dialog").last();
      await form.getByLabel(t("people.name"), { exact: true }).fill("above");
      await form.getByLabel(t("people.limitDailyUsd"), { exact: true }).fill("9999");
      await form.getByRole("button", { name: t("ui.create") }).click();
      await form.getByRole("alert").first().waitFor();
    },
  },
  {
    name: "people-user-refused",
    path: ({ ann }) => `/people?user=${ann.user.id}`,
    open: async (page, t) => {
      await press(page, t("ui.edit"));
      const form = page.getByRole("dialog").last();
      await form.getByLabel(t("people.limitDailyUsd"), { exact: true }).fill("0");
      await form.getByRole("button", { name: t("ui.save") }).click();
      await form.getByRole("alert").first().waitFor();
    },
  },
  {
    name: "people-delete",
    path: ({ max }) => `/people?user=${max.user.id}`,
    open: async (page, t) => {
      const panel = page.getByRole("dialog");
      await panel.getByRole("button", { name: t("ui.more"), exact: true }).click();
      await page.getByRole("menuitem", { name: t("people.removeUser") }).click();
      await page.getByRole("button", { name: t("people.removeUser") }).waitFor();
    },
  },
  { name: "providers", path: "/providers" },
  { name: "providers-flow", path: "/providers?view=flow" },
  {
    name: "providers-tested",
    path: "/providers?id=1",
    open: async (page, t) => {
      await press(page, t("providers.test"));
      await page.getByText(t("providers.testGood")).waitFor();
    },
  },
  {
    name: "providers-tripped",
    path: ({ fragile }) => `/providers?id=${fragile.id}`,
    open: (page, t) => sees(page, t("providers.used")),
  },
  {
    name: "providers-form",
    path: "/providers?id=1",
    open: async (page, t) => {
      await press(page, t("ui.edit"));
      await sees(page, t("providers.help.url"));
    },
  },
  {
    name: "providers-form-features",
    path: "/providers?id=1",
    open: async (page, t) => {
      await press(page, t("ui.edit"));
      await page.getByText(t("features.ofProvider")).scrollIntoViewIfNeeded();
    },
  },
  {
    name: "providers-new",
    path: "/providers",
    open: async (page, t) => {
      await press(page, t("providers.add"));
      await page.getByLabel(t("providers.vendor")).selectOption("deepseek");
      await page.getByText("deepseek-*").waitFor();
    },
  },
  {
    name: "providers-faults",
    path: "/providers",
    open: async (page, t) => {
      await press(page, t("providers.add"));
      const form = page.getByRole("dialog").last();
      await form.getByLabel(t("providers.fields.url"), { exact: true }).fill("nowhere");
      await form.getByRole("button", { name: t("providers.add") }).click();
      await form.getByRole("alert").nth(2).waitFor();
    },
  },
  {
    name: "providers-test-all",
    path: "/providers",
    open: async (page, t) => {
      await press(page, t("providers.testAll"));
      await page.getByRole("dialog").getByRole("button").last().click();
      await page.getByText(t("providers.testGood"), { exact: true }).nth(2).waitFor();
    },
  },
  { name: "rejected", path: "/rejected" },
  { name: "invoices", path: `/invoices?from=${today}&to=${today}&all=true` },
  { name: "invoices-differences", path: `/invoices?from=${today}&to=${today}` },
  {
    name: "invoices-source",
    path: "/invoices",
    open: (page, t) => press(page, t("invoices.addSource")),
  },
  {
    name: "invoices-file",
    path: "/invoices",
    open: (page, t) => press(page, t("invoices.file")),
  },
  { name: "prices", path: "/prices" },
  { name: "prices-new", path: "/prices?add=house-model" },
  { name: "prices-open", path: "/prices?model=claude-sonnet-4-5" },
  {
    name: "prices-upload",
    path: "/prices",
    open: (page, t) => press(page, t("prices.upload.action")),
  },
  { name: "rules-words", path: "/rules" },
  { name: "rules-word", path: "/rules", open: (page, t) => press(page, t("rules.words.add")) },
  { name: "rules-errors", path: "/rules?view=errors" },
  { name: "rules-edit", path: "/rules?view=errors&id=1" },
  {
    name: "rules-tester",
    path: "/rules?view=errors",
    open: async (page, t) => {
      await press(page, t("rules.tester.action"));
      await page
        .getByLabel(t("rules.tester.text"))
        .fill("prompt is too long: 230000 tokens > 200000 maximum");
      await page.getByRole("button", { name: t("rules.tester.submit"), exact: true }).click();
      await sees(page, t("rules.tester.replies"));
    },
  },
  { name: "settings", path: "/settings" },
  {
    name: "settings-groups",
    path: "/settings",
    open: async (page, t) => {
      await page.getByRole("button", { name: t("features.addGroup") }).click();
      await page.getByLabel(t("features.group"), { exact: true }).fill("students");
      await page.getByRole("button", { name: t("features.presets.hosted_tools") }).click();
      await page.getByText(t("features.names")).scrollIntoViewIfNeeded();
    },
  },
  { name: "settings-notifications", path: "/settings?view=notifications" },
  { name: "audit", path: "/audit" },
  {
    name: "audit-entry",
    path: "/audit",
    open: async (page) => {
      await row(page, "providers.addProvider").click();
      await page.getByRole("dialog").getByRole("row").nth(1).waitFor();
    },
  },
  { name: "missing", path: "/nothing-here" },
  { name: "overview-user", path: "/dashboard", as: "ann" },
  { name: "people-own", path: "/people", as: "ann" },
  {
    name: "playground-refused",
    path: "/playground?format=chat-compatible&model=claude-haiku-4-5",
    as: "ann",
    open: async (page, t) => {
      await page.getByLabel(t("playground.prompt"), { exact: true }).fill("Say hello.");
      await page.getByRole("button", { name: t("playground.send"), exact: true }).click();
      await sees(page, t("logs.decisions"));
    },
  },
  {
    name: "my-usage",
    path: "/my-usage",
    as: "ann",
    open: (page, t) => sees(page, t("myUsage.ofKey")),
  },
  {
    name: "people-locked",
    path: ({ bob }) => `/people?user=${bob.user.id}`,
    as: "bob",
    open: async (page, t) => {
      await page
        .getByRole("dialog")
        .getByRole("button", { name: t("people.addKey"), exact: true })
        .click();
      await page.getByText(t("people.limitsLockedNew")).scrollIntoViewIfNeeded();
    },
  },
];

/** The page that is open to everyone. */
export const LOGIN = {
  name: "login",
  path: "/login",
  as: null,
  open: (page, t) => page.getByRole("button", { name: t("login.submit") }).waitFor(),
};

/** The pages that are checked on an empty gateway. Each describes the next step. */
export const EMPTY = [
  "dashboard",
  "logs",
  "sessions",
  "people",
  "providers",
  "rules",
  "audit",
  "connect",
  "playground",
];

/** Opens one of them and waits until it is completely loaded. */
export async function open(page, t, { path, open: act }, people) {
  await page.goto(typeof path === "function" ? path(people) : path);
  await page.getByRole("main").or(page.getByRole("dialog")).first().waitFor();
  await loaded(page, t);
  await act?.(page, t);
  await loaded(page, t);
}

/**
 * Waits for two frames without a loading state. The event stream never ends, so the network is
 * never idle.
 */
async function loaded(page, t) {
  const loading = `[role=status][aria-label="${t("ui.loading")}"]`;
  await page.waitForFunction(
    (one) =>
      new Promise((done) =>
        requestAnimationFrame(() =>
          requestAnimationFrame(() => done(document.querySelector(one) === null)),
        ),
      ),
    loading,
  );
}
