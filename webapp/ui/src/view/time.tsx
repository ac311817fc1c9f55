// SPDX-License-Identifier: MIT
// Times, told both exactly and by how long ago; one clock for the whole page.
import { signal } from "@preact/signals";
import type { JSX } from "preact";

export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

const UNITS: readonly (readonly [number, string])[] = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** "3 s", "5 min", "2 h 10 min" */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const at = UNITS.findIndex(([size]) => whole >= size);
  const unit = UNITS[at];
  if (!unit) return "0 s";
  const [size, name] = unit;
  const next = UNITS[at + 1];
  const rest = next && size > 60 ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)} ${name}${rest && next ? ` ${rest} ${next[1]}` : ""}`;
}

export function relative(at: number, to: number): string {
  const seconds = (to - at) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${span(seconds)} ago` : `in ${span(-seconds)}`;
}

const pad = (value: number, width = 2): string => String(value).padStart(width, "0");

/** Local time; the day only if it is not today. */
export function exact(at: number): string {
  const date = new Date(at);
  const clock = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  if (date.toDateString() === new Date(now.value).toDateString()) return clock;
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${clock}`;
}

export function Time({ at }: { at: string | null | undefined }): JSX.Element {
  if (!at) return <span class="muted">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={at} class="time">
      {exact(ms)} <span class="muted">{relative(ms, now.value)}</span>
    </time>
  );
}

/** How long it took, or has taken so far. */
export function Lasted({ from, to }: { from: string | null; to: string | null }): JSX.Element {
  if (!from) return <span class="muted">–</span>;
  const end = to ? Date.parse(to) : now.value;
  const seconds = Math.max(0, (end - Date.parse(from)) / 1000);
  return <span class="number">{seconds < 10 ? `${seconds.toFixed(1)} s` : span(seconds)}</span>;
}
