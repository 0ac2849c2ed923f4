/** Lines over time, drawn by uPlot in the theme's colours. The legend toggles lines. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./chart.css";
import { useFormat } from "./format";

export interface Series {
  label: string;
  values: (number | null)[];
}

interface Props {
  /** Epoch milliseconds, ascending. */
  times: number[];
  series: Series[];
  show: (value: number) => string;
  label: string;
  /** The period of the legend's sums, while the pointer is not over the chart. */
  whole: string;
  height?: number;
}

/** Colours that are distinct in both themes, also with most colour vision deficiencies. */
const COLOURS = [
  ["#4f46e5", "#8f8bff"],
  ["#0d8a72", "#43d1b3"],
  ["#b45309", "#f2b155"],
  ["#be3a6e", "#ff8fb8"],
  ["#2474c9", "#6db6ff"],
  ["#6b7a1c", "#bfd055"],
  ["#8442b8", "#cf9bff"],
  ["#5b6472", "#a9b1bf"],
];

export function Chart({ times, series, show, label, whole, height = 220 }: Props) {
  const place = useRef<HTMLElement>(null);
  /** The lines that the user hid, by name. */
  const hidden = useRef(new Set<string>());
  const { locale, timeZone } = useFormat();
  const dark = useSyncExternalStore(onThemeChange, isDark);
  useEffect(() => {
    const root = place.current;
    if (!root) return;
    const style = getComputedStyle(root);
    const [ink, line] = [
      style.getPropertyValue("color"),
      style.getPropertyValue("border-top-color"),
    ];
    const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
    const tick: Intl.DateTimeFormatOptions =
      span > 2 * 86_400_000
        ? { month: "short", day: "numeric" }
        : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    const ticks = new Intl.DateTimeFormat(locale, { ...tick, timeZone });
    const moment = new Intl.DateTimeFormat(locale, {
      dateStyle: "medium",
      timeStyle: "short",
      timeZone,
    });
    const font = `11px ${style.fontFamily}`;
    const axis = { stroke: ink, font, grid: { stroke: line, width: 1 }, ticks: { show: false } };
    const plot = new uPlot(
      {
        width: root.clientWidth,
        height,
        padding: [8, 20, 0, 0],
        cursor: { y: false, points: { size: 6 } },
        tzDate: (second) =>
          timeZone === undefined
            ? new Date(second * 1000)
            : uPlot.tzDate(new Date(second * 1000), timeZone),
        hooks: {
          setSeries: [
            (_, index, { show: shown }) => {
              const name = index === null ? undefined : series[index - 1]?.label;
              if (name === undefined || shown === undefined) return;
              if (shown) hidden.current.delete(name);
              else hidden.current.add(name);
            },
          ],
        },
        scales: {
          x: { time: true },
          y: {
            range: (_, low, high) => [Math.min(0, low ?? 0), high && high > 0 ? high * 1.08 : 1],
          },
        },
        axes: [
          {
            ...axis,
            size: 30,
            grid: { show: false },
            values: (_, at) => at.map((second) => ticks.format(second * 1000)),
          },
          { ...axis, size: 64, values: (_, at) => at.map((value) => show(value)) },
        ],
        series: [
          {
            label: " ",
            value: (_, second) => (second === null ? whole : moment.format(second * 1000)),
          },
          ...series.map((one, index) => {
            const colour = COLOURS[index % COLOURS.length]?.[dark ? 1 : 0] ?? ink;
            return {
              label: one.label,
              show: !hidden.current.has(one.label),
              stroke: colour,
              fill: series.length === 1 ? `${colour}22` : undefined,
              width: 1.75,
              points: { show: false },
              value: (_: uPlot, value: number | null, _line: number, at: number | null) =>
                at === null || at === undefined
                  ? show(sum(one.values))
                  : value === null
                    ? "—"
                    : show(value),
            };
          }),
        ],
      },
      [times.map((at) => at / 1000), ...series.map((one) => one.values)],
      root,
    );
    legendByKeyboard(root);
    const observer = new ResizeObserver(() => plot.setSize({ width: root.clientWidth, height }));
    observer.observe(root);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, series, show, whole, height, locale, timeZone, dark]);
  return <figure ref={place} aria-label={label} className="min-w-0 border-line text-faint" />;
}

/** uPlot's legend toggles a line by a click on its name. */
function legendByKeyboard(root: HTMLElement) {
  for (const row of root.querySelectorAll(".u-legend .u-series + .u-series")) {
    const name = row.querySelector<HTMLElement>("th");
    if (!name) continue;
    const tell = () => name.setAttribute("aria-pressed", String(!row.classList.contains("u-off")));
    name.tabIndex = 0;
    name.setAttribute("role", "button");
    name.addEventListener("click", () => setTimeout(tell));
    name.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      name.click();
    });
    tell();
  }
}

const sum = (values: (number | null)[]) =>
  values.reduce<number>((all, value) => all + (value ?? 0), 0);

const SYSTEM_DARK = "(prefers-color-scheme: dark)";

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === undefined ? matchMedia(SYSTEM_DARK).matches : chosen === "dark";
}

/** Calls back when the user or the system changes the theme. */
function onThemeChange(changed: () => void) {
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const system = matchMedia(SYSTEM_DARK);
  system.addEventListener("change", changed);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", changed);
  };
}

/** A small line without axes. */
export function Spark({
  values,
  label,
  className,
}: {
  values: number[];
  label: string;
  className?: string;
}) {
  const top = Math.max(...values, Number.MIN_VALUE);
  const points = values.map(
    (value, index) =>
      `${(index / Math.max(1, values.length - 1)) * 100},${28 - (value / top) * 26}`,
  );
  return (
    <svg
      viewBox="0 0 100 30"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
      className={className}
    >
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
