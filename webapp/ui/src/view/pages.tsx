// SPDX-License-Identifier: MIT
// Pages by cursor: each answer names the next one; those that were seen are remembered.
import type { JSX } from "preact";
import { useState } from "preact/hooks";

export interface Pages {
  /** Of the page that is shown; undefined: the first. */
  readonly cursor: string | undefined;
  /** next: what the answer names; null: this is the last page. */
  control(next: string | null): JSX.Element;
}

export function usePages(words: readonly [string, string] = ["Newer", "Older"]): Pages {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const control = (next: string | null): JSX.Element => (
    <div class="pages">
      <button type="button" disabled={cursors.length === 0} onClick={() => setCursors(cursors.slice(0, -1))}>
        {words[0]}
      </button>
      <span class="number">Page {cursors.length + 1}</span>
      <button type="button" disabled={!next} onClick={() => next && setCursors([...cursors, next])}>
        {words[1]}
      </button>
    </div>
  );
  return { cursor: cursors.at(-1), control };
}
