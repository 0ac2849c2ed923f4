/** Numbers, money, durations, times as text. `useFormat` has language, time zone and currency. */
import { createContext, useContext } from "react";

export interface Format {
  /** BCP 47, for `Intl`. */
  locale: string;
  /** IANA name: the gateway's, not the browser's. `undefined` = the browser's. */
  timeZone?: string;
  /** The unit of amounts: a currency's code (shown as its symbol), a symbol or a word. */
  currency: string;
}

export const FormatContext = createContext<Format>({ locale: "en", currency: "USD" });
export const useFormat = () => useContext(FormatContext);

const number = (locale: string, options?: Intl.NumberFormatOptions) =>
  new Intl.NumberFormat(locale, options);

/** The prefix of an amount: `USD` → `$`, a symbol as it is, a word with a space. */
function before(currency: string): string {
  const known = SIGNS.get(currency);
  if (known !== undefined) return known;
  const sign = /^[A-Z]{3}$/.test(currency) ? symbolOf(currency) : currency;
  const text = /[\p{L}\p{N}]$/u.test(sign) ? `${sign}\u00a0` : sign;
  SIGNS.set(currency, text);
  return text;
}
const SIGNS = new Map<string, string>();

/** The code, if there is no symbol for it. */
function symbolOf(code: string): string {
  const parts = number("en", {
    style: "currency",
    currency: code,
    currencyDisplay: "narrowSymbol",
  }).formatToParts(0);
  return parts.find(({ type }) => type === "currency")?.value ?? code;
}

/**
 * Money with as many digits as needed: two; below a dollar up to four, and below a cent three
 * significant ones. So amounts in one column add up as shown.
 */
export function money(amount: number, { locale, currency }: Format): string {
  const size = Math.abs(amount);
  if (size > 0 && size < 0.000001) return `<${before(currency)}0.000001`;
  const digits =
    size === 0 || size >= 0.99995 ? 2 : Math.min(6, Math.max(4, 2 - Math.floor(Math.log10(size))));
  const text = number(locale, {
    minimumFractionDigits: size >= 10_000 ? 0 : 2,
    maximumFractionDigits: size >= 10_000 ? 0 : digits,
  });
  return `${amount < 0 ? "−" : ""}${before(currency)}${text.format(size)}`;
}

/** All digits. */
export function exactMoney(amount: number, { locale, currency }: Format): string {
  const text = number(locale, { minimumFractionDigits: 2, maximumFractionDigits: 12 });
  return `${amount < 0 ? "−" : ""}${before(currency)}${text.format(Math.abs(amount))}`;
}

export function count(value: number, { locale }: Format): string {
  return number(locale).format(value);
}

/** Large counts shortened: 1.2M. */
export function shortCount(value: number, { locale }: Format): string {
  return value < 10_000
    ? number(locale).format(value)
    : number(locale, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function percent(share: number, { locale }: Format): string {
  return number(locale, {
    style: "percent",
    maximumFractionDigits: share > 0 && share < 0.1 ? 1 : 0,
  }).format(share);
}

/** A share with a digit after the point: `99.9%`. */
export function finePercent(share: number, { locale }: Format): string {
  return number(locale, { style: "percent", maximumFractionDigits: 1 }).format(share);
}

/** From ten times a limit on, it shows `464×` instead of `46,367%`. */
export const isMultiple = (share: number) => share >= 10;

export function multiple(share: number, { locale }: Format): string {
  return `${number(locale, { maximumFractionDigits: 0 }).format(share)}×`;
}

/** The used share of a limit: `83%`, or `464×`. */
export const used = (share: number, format: Format): string =>
  isMultiple(share) ? multiple(share, format) : percent(share, format);

/** A difference: `+9.3%`, `-12%`; no sign if it rounds to zero. */
export function difference(share: number, { locale }: Format): string {
  const maximumFractionDigits = Math.abs(share) < 0.1 ? 1 : 0;
  return number(locale, {
    style: "percent",
    maximumFractionDigits,
    signDisplay: "exceptZero",
  }).format(share);
}

/** Days, hours, minutes and seconds in the words of a language. */
const unitsOf = (locale: string) =>
  locale.startsWith("zh") ? ["天", "小时", "分", "秒"] : ["d", "h", "min", "s"];

/** `820 ms`, `4.2 s`, `3 min 4 s`, `2 h 5 min`, `3 d 2 h`. */
export function duration(ms: number, { locale }: Format): string {
  const [days, hours, minutes, second] = unitsOf(locale);
  const text = (value: number, digits = 0) =>
    number(locale, { maximumFractionDigits: digits }).format(value);
  if (ms < 1000) return `${text(ms)} ms`;
  if (ms < 60_000) return `${text(ms / 1000, ms < 10_000 ? 1 : 0)} ${second}`;
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), days],
    [Math.floor((seconds % 86_400) / 3600), hours],
    [Math.floor((seconds % 3600) / 60), minutes],
    [seconds % 60, second],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first, first + 2)
    .filter(([value]) => value > 0)
    .map(([value, unit]) => `${value} ${unit}`)
    .join(" ");
}

/** An exact time, in the gateway's time zone. */
export function exactTime(at: Date, { locale, timeZone }: Format): string {
  const options: Intl.DateTimeFormatOptions = {
    dateStyle: "medium",
    timeStyle: "medium",
    hourCycle: "h23",
    timeZone,
  };
  return new Intl.DateTimeFormat(locale, options).format(at);
}

/** Whether a text is a calendar day (`2026-11-21`), not a moment. */
export const isDay = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text);

/** A calendar day, in no time zone. */
export function dayText(day: string, { locale }: Format): string {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: "UTC" }).format(
    new Date(day),
  );
}

/** The calendar day of a moment in a time zone, as date inputs have it. */
export const dayOf = (at: string | null | undefined, timeZone: string | undefined) =>
  at
    ? new Intl.DateTimeFormat("en-CA", {
        year: "numeric",
        month: "2-digit",
        day: "2-digit",
        timeZone,
      }).format(new Date(at))
    : "";

/** The time of day, with the day before it unless it is today. */
export function clockTime(at: Date, now: Date, { locale, timeZone }: Format): string {
  const day = (date: Date) =>
    new Intl.DateTimeFormat("en-CA", { dateStyle: "short", timeZone }).format(date);
  const time: Intl.DateTimeFormatOptions = {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZone,
  };
  const dated: Intl.DateTimeFormatOptions =
    day(at) === day(now) ? time : { month: "short", day: "numeric", ...time };
  return new Intl.DateTimeFormat(locale, dated).format(at);
}

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [30, "day"],
  [12, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];

/** `5 minutes ago`, `in 3 days`. */
export function relativeTime(at: Date, now: Date, { locale }: Format): string {
  let value = (at.getTime() - now.getTime()) / 1000;
  const text = new Intl.RelativeTimeFormat(locale, { numeric: "auto", style: "short" });
  for (const [size, unit] of STEPS) {
    if (Math.abs(value) < size || size === Number.POSITIVE_INFINITY) {
      return unit === "second" && Math.abs(value) < 10
        ? text.format(0, "second")
        : text.format(Math.round(value), unit);
    }
    value /= size;
  }
  return "";
}
