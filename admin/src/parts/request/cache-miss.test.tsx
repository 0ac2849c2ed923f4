import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { renderPart } from "@/test-page";
import { CacheMiss } from "./cache-miss";

test("the line names the tokens, the cost and the cause", async () => {
  const miss = { cause: "tools", message: null, tokens: 41_000, costUsd: 0.21 };
  const { unmount } = await renderPart(<CacheMiss miss={miss} />);
  const line = "Not read from the prompt cache: 41,000 tokens, $0.21 more. Tools changed.";
  expect(screen.getByText(line)).toBeTruthy();
  unmount();
  await renderPart(<CacheMiss miss={{ ...miss, cause: "message", message: 7 }} />);
  expect(screen.getByText(/Message 7 changed\.$/)).toBeTruthy();
});

test("a cause of a later version has a text, and a request without a miss has no line", async () => {
  const miss = { cause: "phase_of_the_moon", message: null, tokens: 2000, costUsd: 0 };
  const { unmount } = await renderPart(<CacheMiss miss={miss} />);
  expect(screen.getByText(/Not explained by the request\.$/)).toBeTruthy();
  unmount();
  const { container } = await renderPart(<CacheMiss miss={null} />);
  expect(container.textContent).toBe("");
});
