// SPDX-License-Identifier: MIT
// What to do when there is nothing to show, or when something failed.
import type { ComponentChildren, JSX } from "preact";
import type { Fault } from "../api/client";
import { lost } from "../health";

export function FaultNotice({ fault, onRetry }: { fault: Fault; onRetry?: () => void }): JSX.Element {
  const { problem } = fault;
  return (
    <div class="notice bad" role="alert">
      <p>
        <strong>{fault.title}</strong>
        {fault.code && <code>{fault.code}</code>}
      </p>
      {fault.message !== fault.title && <p>{fault.message}</p>}
      {problem.caret && <pre class="caret">{problem.caret}</pre>}
      {fault.cure && <p class="cure">{fault.cure}</p>}
      <p class="muted">
        {problem.requestId && <>Request {problem.requestId} </>}
        {onRetry && fault.status !== 404 && (
          <button type="button" onClick={onRetry}>
            Try again
          </button>
        )}
      </p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <p>
        <strong>{title}</strong>
      </p>
      {children}
    </div>
  );
}

function NoAnswer(): JSX.Element {
  return (
    <Empty title="Nothing to show: the service does not answer">
      <p>It appears here as soon as the service answers.</p>
    </Empty>
  );
}

/** The frame of what is loaded: a fault above what is known, a quiet line while nothing is. */
export function Loaded<T>(props: {
  live: { value: T | undefined; fault: Fault | null; reload(): void };
  children: (value: T) => ComponentChildren;
}): JSX.Element {
  const { value, fault, reload } = props.live;
  return (
    <>
      {fault && (fault.status === 404 ? <FaultNotice fault={fault} /> : <FaultNotice fault={fault} onRetry={reload} />)}
      {value !== undefined && props.children(value)}
      {value === undefined && !fault && (lost.value === null ? <p class="loading muted">Loading…</p> : <NoAnswer />)}
    </>
  );
}
