// SPDX-License-Identifier: MIT
// Names and their values; what has no value is left out.
import type { ComponentChildren, JSX } from "preact";

/** true: it takes a line of its own. */
export type Detail = readonly [string, ComponentChildren, boolean?];

export function Details({ of }: { of: readonly Detail[] }): JSX.Element {
  return (
    <dl class="details">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value, whole]) => (
          <div key={name} class={whole ? "whole" : ""}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
