import { expect, test } from "vitest";
import { difference, duration, exactMoney, money, used } from "./format";

const as = (currency: string) => ({ locale: "en", currency });

test("a currency's code is shown by its symbol, a symbol as it is, a word with a space", () => {
  const shown = ["USD", "CNY", "€", "R$", "credits", "XYZ"].map((currency) =>
    money(1234.5, as(currency)),
  );
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
  const shown = [0.0934, -0.124, 12, -0.0004, 0.0004, 0].map((share) =>
    difference(share, as("USD")),
  );
  expect(shown).toEqual(["+9.3%", "-12%", "+1,200%", "0%", "0%", "0%"]);
});

test("what is used of a limit is a percentage, and a multiple from ten times on", () => {
  const shown = [0.0512, 0.83, 1, 9.99, 10, 463.67, 12_345].map((share) => used(share, as("USD")));
  expect(shown).toEqual(["5.1%", "83%", "100%", "999%", "10×", "464×", "12,345×"]);
});

test("a duration has its two largest units, in the words of the language", () => {
  const shown = (locale: string) =>
    [820, 4200, 42_000, 184_000, 7_500_000, 266_400_000].map((ms) =>
      duration(ms, { locale, currency: "USD" }),
    );
  expect(shown("en")).toEqual(["820 ms", "4.2 s", "42 s", "3 min 4 s", "2 h 5 min", "3 d 2 h"]);
  expect(shown("zh-CN")).toEqual([
    "820 ms",
    "4.2 秒",
    "42 秒",
    "3 分 4 秒",
    "2 小时 5 分",
    "3 天 2 小时",
  ]);
});
