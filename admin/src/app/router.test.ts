/** The parameters that pages read from an address; invalid ones are ignored. */
import { QueryClient } from "@tanstack/react-query";
import { expect, test } from "vitest";
import { makeRouter } from "./router";

/** The search parameters that the page at this address gets; absent ones are left out. */
function read(address: string) {
  window.history.replaceState(null, "", address);
  const router = makeRouter(new QueryClient());
  const search = router.matchRoutes(router.latestLocation).at(-1)?.search ?? {};
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined));
}

test.each([
  ["/login?from=%2Flogs%3Fuser%3D1", { from: "/logs?user=1" }],
  ["/dashboard?range=7days&by=key&show=calls", { range: "7days", by: "key", show: "calls" }],
  [
    "/people?q=ann&state=disabled&group=eu&view=keys&user=1&key=2",
    { q: "ann", state: "disabled", group: "eu", view: "keys", user: 1, key: 2 },
  ],
  ["/providers?id=3&view=flow", { id: 3, view: "flow" }],
  ["/rules?view=errors&q=secret&id=4", { view: "errors", q: "secret", id: 4 }],
  [
    "/logs?from=2026-11-21&to=2026-11-22&model=claude&status=502&failed=true&user=1&key=2&provider=3",
    {
      from: "2026-11-21",
      to: "2026-11-22",
      model: "claude",
      status: 502,
      failed: true,
      user: 1,
      key: 2,
      provider: 3,
    },
  ],
  [
    "/logs?session=s1&id=i1&endpoint=%2Fv1%2Fmessages&retries=0&request=r1",
    { session: "s1", id: "i1", endpoint: "/v1/messages", retries: 0, request: "r1" },
  ],
  ["/sessions?q=ann&session=s1&key=2", { q: "ann", session: "s1", key: 2 }],
  ["/connect?client=claude-code", { client: "claude-code" }],
  ["/playground?key=1&format=alt-cli&model=gemini", { key: 1, format: "alt-cli", model: "gemini" }],
  ["/prices?q=gpt&source=sync&model=gpt-5", { q: "gpt", source: "sync", model: "gpt-5" }],
  ["/settings?view=notifications", { view: "notifications" }],
  [
    "/audit?actor=ann&action=users.add&target=bob&start=2026-11-21&end=2026-11-22&id=5",
    {
      actor: "ann",
      action: "users.add",
      target: "bob",
      start: "2026-11-21",
      end: "2026-11-22",
      id: 5,
    },
  ],
  ["/rejected?q=ann", { q: "ann" }],
])("%s is read whole", (address, search) => {
  expect(read(address)).toEqual(search);
});

test.each([
  ["a word that the page does not know", "/dashboard?range=year&by=user&show=cost", {}],
  [
    "a parameter that the page does not have stays",
    "/rejected?q=ann&colour=red",
    { q: "ann", colour: "red" },
  ],
  ["one bad value among good ones", "/people?state=asleep&q=ann&user=-1", { q: "ann" }],
  ["an empty text", "/sessions?q=&session=", {}],
  ["a number where a text is wanted", "/logs?model=7&session=019", { model: "7", session: "019" }],
  ["a number in quotes", "/logs?status=%22502%22", { status: 502 }],
  ["no number", "/logs?status=bad&user=1.5&key=-2&provider=true&retries=null", {}],
  [
    "a number beyond what is exact",
    "/logs?status=9007199254740992&user=9007199254740991",
    { user: 9007199254740991 },
  ],
  ["no day", "/logs?from=yesterday&to=2026&model=m", { model: "m" }],
  ["a moment", "/logs?from=2026-11-21T10:00:00.000Z", { from: "2026-11-21T10:00:00.000Z" }],
  ["a flag in quotes", "/logs?failed=%22true%22", { failed: true }],
  ["a flag that is off", "/logs?failed=false", {}],
  ["a flag that is a number", "/logs?failed=1", {}],
  ["lists and objects", "/logs?model=%5B%22a%22%5D&status=%7B%22a%22%3A1%7D&failed=%5B%5D", {}],
  ["a new price without a name", "/prices?add=", { add: "" }],
  ["a new price whose name is a number", "/prices?add=7", {}],
])("%s", (_, address, search) => {
  expect(read(address)).toEqual(search);
});
