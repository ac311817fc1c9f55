// SPDX-License-Identifier: MIT
// Lines over time. The values are also told in text beside it.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { dark } from "../theme";

export interface Line {
  readonly name: string;
  readonly colour: string; /* a custom property */
  readonly values: readonly number[];
  /** Lengths of dashes and gaps: told apart without the colour. */
  readonly dash?: readonly number[];
}

const HEIGHT = 180;

function colourOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || "currentColor";
}

const clockOf = (at: number): string => new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

function optionsFor(host: HTMLElement, lines: readonly Line[], onAt: (at: number | null) => void): uPlot.Options {
  const clock: uPlot.Axis["values"] = (_, splits) => splits.map(clockOf);
  const axis = { stroke: colourOf(host, "--chart-ink"), grid: { stroke: colourOf(host, "--chart-grid"), width: 1 } };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    legend: { show: false },
    hooks: { setCursor: [(plot) => onAt(plot.cursor.idx ?? null)] },
    scales: { y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] } },
    axes: [{ ...axis, values: clock }, { ...axis, size: 56 }],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.name,
        stroke: colourOf(host, line.colour),
        dash: [...(line.dash ?? [])],
        width: 2,
        points: { show: false },
      })),
    ],
  };
}

/** The values of the minute that is pointed at, or of the last whole one. */
function Legend({ times, lines, at }: { times: readonly number[]; lines: readonly Line[]; at: number | null }): JSX.Element {
  const shown = at ?? Math.max(0, times.length - 2);
  const time = times[shown];
  return (
    <ul class="plain legend">
      {lines.map((line) => (
        <li key={line.name}>
          <svg width="24" height="8" aria-hidden="true" style={{ stroke: `var(${line.colour})` }}>
            <line x2="24" y1="4" y2="4" stroke-width="3" stroke-dasharray={line.dash?.join(" ")} />
          </svg>
          {line.name} <strong class="number">{line.values[shown]?.toLocaleString("en") ?? "–"}</strong>
        </li>
      ))}
      <li class="muted">{time === undefined ? "" : `at ${clockOf(time)}`}</li>
    </ul>
  );
}

export function Chart({ label, times, lines }: { label: string; times: readonly number[]; lines: readonly Line[] }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const isDark = dark.value;

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const made = new uPlot(optionsFor(element, lines, setAt), [[], ...lines.map(() => [])], element);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [isDark]);

  useEffect(() => {
    plot.current?.setData([[...times], ...lines.map((line) => [...line.values])]);
  }, [times, lines, isDark]);

  return (
    <>
      <div class="chart" ref={host} role="img" aria-label={label} />
      <Legend times={times} lines={lines} at={at} />
    </>
  );
}
