// SPDX-License-Identifier: MIT
// Text in the filter language, checked while it is written: the mistake is marked in the text
// itself, and told below it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { faultOf, type Fault } from "../api/client";

const PAUSE_MS = 250;

export interface Check {
  readonly text: string;
  readonly fault: Fault | null;
  readonly warnings: readonly string[];
}

/** Asks `check` when the text has rested for a moment; null while that is not known. */
export function useCheck(text: string, check: (text: string, signal: AbortSignal) => Promise<readonly string[]>, key = ""): Check | null {
  const [result, setResult] = useState<Check | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      let fault: Fault | null = null;
      let warnings: readonly string[] = [];
      try {
        warnings = await check(text, abort.signal);
      } catch (error) {
        fault = faultOf(error);
      }
      if (!abort.signal.aborted) setResult({ text, fault, warnings });
    };
    const timer = setTimeout(() => void run(), PAUSE_MS);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [text, key]);
  return result?.text === text ? result : null;
}

/** The service counts bytes, the browser UTF-16 units. */
function unitsAt(text: string, bytes: number): number {
  return new TextDecoder().decode(new TextEncoder().encode(text).slice(0, bytes)).length;
}

function Marked({ text, offset }: { text: string; offset: number }): JSX.Element {
  const at = unitsAt(text, offset);
  const word = /^(?:[\w.]+|.)/s.exec(text.slice(at))?.[0] ?? " ";
  return (
    <>
      {text.slice(0, at)}
      <mark>{word}</mark>
      {text.slice(at + word.length)}
    </>
  );
}

function told(check: Check | null, text: string, good: ComponentChildren): ComponentChildren {
  if (check?.fault) return check.fault.message;
  if (check?.warnings.length) return check.warnings.join("; ");
  return check && text ? good : "\u00a0";
}

export function FilterBox(props: {
  id: string;
  label: string;
  text: string;
  check: Check | null;
  placeholder?: string;
  /** What is below the box when the text is well. */
  good?: ComponentChildren;
  onText: (text: string) => void;
  onEnter?: () => void;
}): JSX.Element {
  const { id, check, text } = props;
  const fault = check?.fault;
  const offset = fault?.problem.position?.offset;
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || !props.onEnter) return;
    event.preventDefault();
    props.onEnter();
  };
  return (
    <div class="filter">
      <label for={id}>{props.label}</label>
      <div class="editor">
        <pre aria-hidden="true">{offset === undefined ? text : <Marked text={text} offset={offset} />} </pre>
        <textarea
          id={id}
          rows={1}
          spellcheck={false}
          autocomplete="off"
          placeholder={props.placeholder ?? ""}
          value={text}
          aria-invalid={fault ? "true" : "false"}
          aria-describedby={`${id}-told`}
          onInput={(event) => props.onText(event.currentTarget.value)}
          onKeyDown={onKey}
        />
      </div>
      <p id={`${id}-told`} class={fault ? "told bad" : "told"} aria-live="polite">
        {told(check, text, props.good ?? "This filter is valid.")}
      </p>
    </div>
  );
}
