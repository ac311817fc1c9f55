// SPDX-License-Identifier: MIT
// Lines of a log: they stay at their end unless somebody has scrolled up, and what is searched for is
// marked. Everything is text.
import type { ComponentChildren, JSX, VNode } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Line, Stream } from "./output_log";

/** Where the text is found, whatever its capitals; ends of matches are behind them. */
function* found(text: string, query: string): Generator<[number, number]> {
  if (!query) return;
  const inside = text.toLowerCase();
  for (let at = inside.indexOf(query); at >= 0; at = inside.indexOf(query, at + query.length)) yield [at, at + query.length];
}

export function hasMatch(line: Line, query: string): boolean {
  return query !== "" && line.text.toLowerCase().includes(query);
}

/** The spans of a line, cut where a match begins or ends. */
function marked(line: Line, query: string): ComponentChildren {
  const matches = [...found(line.text, query)];
  const pieces: JSX.Element[] = [];
  let at = 0;
  for (const { text, look } of line.spans) {
    const end = at + text.length;
    const cuts = matches.flat().filter((cut) => cut > at && cut < end);
    let from = at;
    for (const to of [...cuts, end]) {
      const piece = line.text.slice(from, to);
      const isMatch = matches.some(([begin, behind]) => begin <= from && to <= behind);
      pieces.push(isMatch ? <mark class={look}>{piece}</mark> : <span class={look}>{piece}</span>);
      from = to;
    }
    at = end;
  }
  return pieces;
}

interface LogTextProps {
  label: string;
  lines: readonly Line[];
  /** In small letters. */
  query: string;
  /** The match that is looked at: it is scrolled to. */
  current: Line | null;
  wrap: boolean;
  /** Lines before the first; null: unknown. */
  numbers: Readonly<Record<Stream, number | null>> | null;
  isMixed: boolean;
  empty: ComponentChildren;
}

export function LogText(props: LogTextProps): JSX.Element {
  const { lines, query, current, numbers } = props;
  const self = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef({ first: -1, height: 0 });
  // The same element for the same line: nothing of it is compared again.
  const rows = useMemo(() => new WeakMap<Line, VNode>(), [query, current]);
  const rowOf = (line: Line): VNode => {
    const row = rows.get(line) ?? (
      <div key={line.id} class={`line ${line.stream} ${line === current ? "current" : ""}`}>
        <span>{query ? marked(line, query) : line.spans.map(({ text, look }) => (look ? <span class={look}>{text}</span> : text))}</span>
      </div>
    );
    rows.set(line, row);
    return row;
  };

  useLayoutEffect(() => {
    const element = self.current;
    if (!element) return;
    const first = lines[0]?.id ?? -1;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
    else if (first !== before.current.first) element.scrollTop += element.scrollHeight - before.current.height;
    before.current = { first, height: element.scrollHeight };
  }, [lines]);
  useLayoutEffect(() => {
    const element = self.current;
    const row = element?.querySelector<HTMLElement>(".current");
    if (element && row) element.scrollTop = row.offsetTop - element.clientHeight / 2;
  }, [current]);
  const onScroll = (): void => {
    const element = self.current;
    if (element) atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 8;
  };
  const known = (stream: Stream): string => (numbers && numbers[stream] === null ? `unknown-${stream}` : "");
  const looks = ["output", props.wrap && "wrap", numbers && "numbers", props.isMixed && "mixed", known("stdout"), known("stderr")];
  return (
    <div
      ref={self}
      class={looks.filter(Boolean).join(" ")}
      style={{ counterReset: `stdout ${numbers?.stdout ?? 0} stderr ${numbers?.stderr ?? 0}` }}
      tabIndex={0}
      role="log"
      aria-label={props.label}
      onScroll={onScroll}
    >
      {lines.length > 0 ? lines.map(rowOf) : props.empty}
    </div>
  );
}
