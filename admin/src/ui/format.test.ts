import { expect, test } from "vitest";
import { difference, exactMoney, money } from "./format";

const as = (currency: string) => ({ locale: "en", currency });

test("a currency's code is shown by its symbol, a symbol as it is, a word with a space", () => {
  const shown = ["USD", "CNY", "€", "R$", "credits", "XYZ"].map((currency) => money(1234.5, as(currency)));
  expect(shown).toEqual([
    "$1,234.50",
    "¥1,234.50",
    "€1,234.50",
    "R$1,234.50",
    "credits\u00a01,234.50",
    "XYZ\u00a01,234.50",
  ]);
});

test("small amounts keep digits that say something; the exact one keeps all", () => {
  expect([0, 0.0123456, 0.0000001, -2].map((amount) => money(amount, as("USD")))).toEqual([
    "$0.00",
    "$0.0123",
    "<$0.000001",
    "−$2.00",
  ]);
  expect(exactMoney(0.0123456789, as("€"))).toBe("€0.0123456789");
});

test("parts add up to their sum as they are shown", () => {
  const shown = [0.0804, 0.01, 0.00061, 0.09101].map((amount) => money(amount, as("USD")));
  expect(shown).toEqual(["$0.0804", "$0.01", "$0.00061", "$0.091"]);
  expect(money(0.09041, as("USD"))).toBe("$0.0904");
  expect(money(0.5, as("USD"))).toBe("$0.50");
});

test("a difference has a sign, but not where it rounds to nothing", () => {
  const shown = [0.0934, -0.124, 12, -0.0004, 0.0004, 0].map((share) => difference(share, as("USD")));
  expect(shown).toEqual(["+9.3%", "-12%", "+1,200%", "0%", "0%", "0%"]);
});
