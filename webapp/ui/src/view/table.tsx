// SPDX-License-Identifier: MIT
// A table that can be walked with the arrow keys; rows keep their identity, so that focus and
// selection survive an update.
import type { ComponentChildren, JSX } from "preact";

export interface Column<T> {
  readonly key: string;
  readonly head: string;
  /** What the head means, if it is not plain. */
  readonly title?: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly number?: boolean;
  readonly wide?: boolean;
  /** Text that may be long: cut with an ellipsis, whole in its title. */
  readonly clip?: boolean;
}

export interface Selection {
  readonly chosen: ReadonlySet<string>;
  onChange(chosen: ReadonlySet<string>): void;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  idOf: (row: T) => string;
  selection?: Selection | undefined;
  empty: ComponentChildren;
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** Arrow keys go to the first thing in another row that takes the focus. */
function walk(event: JSX.TargetedKeyboardEvent<HTMLTableSectionElement>): void {
  const step = STEPS[event.key];
  const target = event.target as HTMLElement;
  if (step === undefined || target.matches("input:not([type=checkbox]), textarea, select")) return;
  const rows = [...event.currentTarget.rows];
  const at = rows.findIndex((row) => row.contains(target));
  const row = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
  const like = target.matches("input") ? "input" : "a, button";
  const next = row?.querySelector<HTMLElement>(like);
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function Clipped({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <span class="clip" title={typeof children === "string" ? children : undefined}>
      {children}
    </span>
  );
}

function toggled(chosen: ReadonlySet<string>, id: string): Set<string> {
  const changed = new Set(chosen);
  if (!changed.delete(id)) changed.add(id);
  return changed;
}

export function Table<T>({ label, columns, rows, idOf, selection, empty }: TableProps<T>): JSX.Element {
  if (rows.length === 0) return <>{empty}</>;
  const ids = rows.map(idOf);
  const all = selection !== undefined && ids.every((id) => selection.chosen.has(id));
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {selection && (
              <th class="check">
                <input
                  type="checkbox"
                  aria-label={`Select all on this page`}
                  checked={all}
                  onChange={() => selection.onChange(all ? new Set() : new Set(ids))}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.key} scope="col" class={column.number ? "number" : ""} title={column.title}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody onKeyDown={walk}>
          {rows.map((row) => {
            const id = idOf(row);
            const chosen = selection?.chosen.has(id) ?? false;
            return (
              <tr key={id} class={chosen ? "chosen" : ""}>
                {selection && (
                  <td class="check">
                    <input
                      type="checkbox"
                      aria-label={`Select ${id}`}
                      checked={chosen}
                      onChange={() => selection.onChange(toggled(selection.chosen, id))}
                    />
                  </td>
                )}
                {columns.map((column) => (
                  <td
                    key={column.key}
                    data-column={column.key}
                    data-label={column.head}
                    class={`${column.number ? "number" : ""} ${column.wide ? "wide" : ""}`}
                  >
                    {column.clip ? <Clipped>{column.cell(row)}</Clipped> : column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
