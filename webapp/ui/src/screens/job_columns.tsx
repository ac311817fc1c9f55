// SPDX-License-Identifier: MIT
// Which columns are shown; this browser remembers it.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Column } from "../view/table";

const KEY = "sluice.job_columns";

function kept(known: readonly string[], first: readonly string[]): readonly string[] {
  const text = localStorage.getItem(KEY);
  const chosen = text ? text.split(",").filter((key) => known.includes(key)) : [];
  return chosen.length > 0 ? chosen : first;
}

export function useColumns<T>(all: readonly Column<T>[], first: readonly string[]): [readonly Column<T>[], JSX.Element] {
  const [keys, setKeys] = useState(() => kept(all.map((column) => column.key), first));
  const toggle = (key: string): void => {
    const changed = keys.includes(key) ? keys.filter((one) => one !== key) : [...keys, key];
    localStorage.setItem(KEY, changed.join(","));
    setKeys(changed);
  };
  const chooser = (
    <details class="menu">
      <summary>Columns</summary>
      <div>
        {all.slice(1).map((column) => (
          <label key={column.key} class="inline">
            <input type="checkbox" checked={keys.includes(column.key)} onChange={() => toggle(column.key)} />
            {column.head}
          </label>
        ))}
      </div>
    </details>
  );
  return [all.filter((column, index) => index === 0 || keys.includes(column.key)), chooser];
}
