// SPDX-License-Identifier: MIT
// Sizes for people; exactly in the title.
import type { JSX } from "preact";

const UNITS = ["KB", "MB", "GB", "TB"];

/** "512 bytes", "200 KB", "1.5 MB": decimal units, as disks are sold in. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 999.5 && unit < UNITS.length - 1; unit++) value /= 1000;
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit] ?? ""}`;
}

export function Size({ of }: { of: number }): JSX.Element {
  return (
    <span class="number" title={`${of.toLocaleString("en")} bytes`}>
      {sizeText(of)}
    </span>
  );
}
