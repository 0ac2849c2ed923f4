/**
 * Every page (and drawer, and panel) that is looked at: by axe, for errors on the console, and as a picture. Those with `key` are
 * seen with that key, and come last; the others by the administrator.
 */
export const PAGES = ({ ann }) => [
  { name: "overview", path: "/dashboard" },
  { name: "logs", path: "/logs" },
  {
    name: "logs-request",
    path: "/logs",
    ready: async (page) => {
      await page.locator("tbody tr[data-row]").filter({ hasText: "claude-haiku-4-5" }).first().click();
      await page.getByText("What happened").waitFor();
      await page.getByText("Tokens and cost").waitFor();
    },
  },
  { name: "sessions", path: "/sessions" },
  {
    name: "sessions-session",
    path: "/sessions",
    ready: async (page) => {
      await page.locator("tbody tr[data-row]").first().click();
      await page.getByText("Requests in order").waitFor();
    },
  },
  { name: "connect", path: "/connect" },
  { name: "connect-curl", path: "/connect?client=curl" },
  { name: "people", path: "/people" },
  { name: "rules-words", path: "/rules" },
  { name: "rules-errors", path: "/rules?view=errors" },
  { name: "rules-edit", path: "/rules?view=errors&id=1" },
  { name: "people-keys", path: "/people?view=keys" },
  {
    name: "people-user",
    path: `/people?user=${ann.user.id}&key=${ann.defaultKey.id}`,
    ready: (page) => page.getByText("Used of the limits").waitFor(),
  },
  {
    name: "people-form",
    path: "/people",
    ready: async (page) => {
      await page.getByRole("button", { name: "New user" }).click();
      await page.getByRole("textbox", { name: "Name", exact: true }).waitFor();
    },
  },
  { name: "providers", path: "/providers" },
  { name: "providers-flow", path: "/providers?view=flow" },
  { name: "providers-panel", path: "/providers?id=1" },
  {
    name: "providers-form",
    path: "/providers?id=1",
    ready: async (page) => {
      await page.getByRole("button", { name: "Edit" }).click();
      await page.getByText("The base address").waitFor();
    },
  },
  { name: "prices", path: "/prices" },
  { name: "prices-new", path: "/prices?add=house-model" },
  { name: "prices-open", path: "/prices?model=claude-sonnet-4-5" },
  { name: "settings", path: "/settings" },
  { name: "settings-notifications", path: "/settings?view=notifications" },
  { name: "audit", path: "/audit" },
  { name: "missing", path: "/nothing-here" },
  {
    name: "my-usage",
    path: "/my-usage",
    key: ann.defaultKey.key,
    ready: (page) => page.getByText("Of this key").waitFor(),
  },
];
