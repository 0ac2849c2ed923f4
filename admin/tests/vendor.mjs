/** A vendor's report API (Anthropic's): a few charges on the last day that is asked for. */
import { createServer } from "node:http";

const DAY = 86_400_000;
export const ADMIN_KEY = "sk-ant-admin01-of-the-vendor-0123456789";

const USAGE = {
  uncached_input_tokens: 5200,
  cache_read_input_tokens: 900,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 400 },
  output_tokens: 2100,
  api_key_id: "apikey_1",
  model: "claude-haiku-4-5",
  service_tier: "standard",
  context_window: "0-200k",
};
const COST = {
  currency: "USD",
  amount: "4.25",
  description: "Claude Haiku 4.5 Usage - Output Tokens",
  cost_type: "tokens",
  model: "claude-haiku-4-5",
  token_type: "output_tokens",
  service_tier: "standard",
  context_window: "0-200k",
};
const FEE = {
  ...COST,
  amount: "1.5",
  description: "Web Search Usage",
  cost_type: "web_search",
  model: null,
  token_type: null,
};

/** Starts it; `stop` ends it. */
export function startVendor() {
  const server = createServer((request, answer) => {
    const { pathname, searchParams } = new URL(request.url, "http://vendor");
    const results = {
      "/v1/organizations/usage_report/messages": [USAGE],
      "/v1/organizations/cost_report": [COST, FEE],
    }[pathname];
    const status = !results ? 400 : request.headers["x-api-key"] === ADMIN_KEY ? 200 : 401;
    const day = Date.parse(searchParams.get("ending_at")) - DAY;
    const bucket = { starting_at: new Date(day), ending_at: new Date(day + DAY), results };
    answer.writeHead(status, { "content-type": "application/json" });
    answer.end(JSON.stringify({ data: [bucket], has_more: false, next_page: null }));
  });
  server.unref();
  return new Promise((started) =>
    server.listen(0, "127.0.0.1", () =>
      started({
        url: `http://127.0.0.1:${server.address().port}`,
        stop: () => server.close(),
      }),
    ),
  );
}
