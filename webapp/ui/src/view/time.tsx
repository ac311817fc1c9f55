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

const day = (date: Date): string => `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
const clock = (date: Date): string => `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;

/** Local time; the day only if it is not today. */
export function exact(at: number): string {
  const date = new Date(at);
  return date.toDateString() === new Date(now.value).toDateString() ? clock(date) : `${day(date)} ${clock(date)}`;
}

/** "UTC", "UTC+02:00": how far local time was ahead of it then. */
export function zone(at: number): string {
  const minutes = -new Date(at).getTimezoneOffset();
  if (minutes === 0) return "UTC";
  const off = Math.abs(minutes);
  return `UTC${minutes > 0 ? "+" : "-"}${pad(Math.floor(off / 60))}:${pad(off % 60)}`;
}

function whole(at: number): string {
  const date = new Date(at);
  return `${day(date)} ${clock(date)} ${zone(at)}`;
}

/** full: with day and zone, which the title has in any case. */
export function Time({ at, full }: { at: string | null | undefined; full?: boolean }): JSX.Element {
  if (!at) return <span class="muted">–</span>;
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={`${whole(ms)}, ${at}`} class="time">
      {full ? whole(ms) : exact(ms)} <span class="muted">{relative(ms, now.value)}</span>
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
