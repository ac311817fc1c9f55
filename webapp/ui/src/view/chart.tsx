// SPDX-License-Identifier: MIT
// Lines over time. The values are also told in text beside it.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { dark } from "../theme";

export interface Line {
  readonly name: string;
  readonly colour: string; /* a custom property */
  readonly values: readonly number[];
}

const HEIGHT = 180;

function colourOf(element: Element, name: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || "currentColor";
}

function optionsFor(host: HTMLElement, lines: readonly Line[]): uPlot.Options {
  const clock: uPlot.Axis["values"] = (_, splits) =>
    splits.map((at) => new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }));
  const axis = { stroke: colourOf(host, "--chart-ink"), grid: { stroke: colourOf(host, "--chart-grid"), width: 1 } };
  return {
    width: host.clientWidth,
    height: HEIGHT,
    cursor: { y: false },
    legend: { show: true, live: true },
    scales: { y: { range: (_, __, most) => [0, Math.max(4, most * 1.1)] } },
    axes: [{ ...axis, values: clock }, { ...axis, size: 56 }],
    series: [
      { label: "at", value: "{HH}:{mm}" },
      ...lines.map((line) => ({ label: line.name, stroke: colourOf(host, line.colour), width: 2, points: { show: false } })),
    ],
  };
}

export function Chart({ label, times, lines }: { label: string; times: readonly number[]; lines: readonly Line[] }): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const isDark = dark.value;

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const made = new uPlot(optionsFor(element, lines), [[], ...lines.map(() => [])], element);
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

  return <div class="chart" ref={host} role="img" aria-label={label} />;
}
