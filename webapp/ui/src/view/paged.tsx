// SPDX-License-Identifier: MIT
// A list that is read page by page: its table, and below it the way to the other pages.
import type { ComponentChildren, JSX } from "preact";
import { useLive } from "../live";
import { Loaded } from "./notice";
import { usePages } from "./pages";
import { Table, type Column } from "./table";

export const PAGE = 50;

export interface Page<T> {
  readonly rows: readonly T[];
  readonly next: string | null;
}

export function Paged<T>(props: {
  label: string;
  load: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>;
  columns: (reload: () => void) => readonly Column<T>[];
  idOf: (row: T) => string;
  empty: ComponentChildren;
  words?: readonly [string, string];
}): JSX.Element {
  const pages = usePages(props.words ?? ["Back", "Next"]);
  const live = useLive(`${props.label} ${pages.cursor}`, (signal) => props.load(pages.cursor, signal));
  return (
    <Loaded live={live}>
      {({ rows, next }) => (
        <>
          <Table label={props.label} columns={props.columns(live.reload)} rows={rows} idOf={props.idOf} empty={props.empty} />
          {(next || pages.cursor) && pages.control(next)}
        </>
      )}
    </Loaded>
  );
}
