// SPDX-License-Identifier: MIT
// The one place that keeps what is shown fresh, and knows how old it is. The stream of events says that
// something happened to jobs; whatever is shown is then asked for again, and now and then in any case
// for what no event says (heartbeats, depths). All of it stops while it is paused or the tab is hidden.
import { computed, effect, signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Fault, faultOf } from "./api/client";
import { listen } from "./api/sse";

export const paused = signal(false);
const hidden = signal(document.hidden);
document.addEventListener("visibilitychange", () => (hidden.value = document.hidden));
/** Nothing is asked for, and no stream kept: a browser has few connections for all of its tabs. */
export const still = computed(() => paused.value || hidden.value);
/** Rises when something has happened to a job. */
const pulse = signal(0);
const streaming = signal(false);

const AT_MOST_EVERY_MS = 1000;
const WITH_STREAM_MS = 5000;
const WITHOUT_STREAM_MS = 2000;
const AFTER_FAULT_MS = 4000;
/** Longer than the service takes for the slowest answer that it gives. */
const ANSWER_WITHIN_MS = 35_000;

/** Of a part of what is on the screen: when its last good answer was asked for, or the first one (ms). */
export interface Shown {
  readonly at: number;
  readonly failing: boolean;
}
export const shown = signal<ReadonlyMap<object, Shown>>(new Map());

function note(part: object, state: Partial<Shown> | null): void {
  const changed = new Map(shown.peek());
  if (state) changed.set(part, { at: Date.now(), failing: false, ...changed.get(part), ...state });
  else changed.delete(part);
  shown.value = changed;
}

/** An answer that says no is one; 429 asks us to come later. */
function isAnswer(fault: Fault): boolean {
  return fault.status >= 400 && fault.status < 500 && fault.status !== 429;
}

/** Everything that is shown is asked for again, at once. */
export function refresh(): void {
  pulse.value += 1;
}

/** The service sends something every ten seconds: a stream without it is dead. */
export const STREAM_QUIET_MS = 25_000;

/** Listens unless all stands still; to be started once for a session, the answer ends it. */
export function followEvents(): () => void {
  let abort = new AbortController();
  const stop = effect(() => {
    abort.abort();
    streaming.value = false;
    if (still.value) return;
    abort = new AbortController();
    pulse.value = pulse.peek() + 1; // for what has happened meanwhile
    void listen(
      "events",
      { signal: abort.signal, quietMs: STREAM_QUIET_MS },
      { onEvent: () => (pulse.value += 1), onState: (fault) => (streaming.value = fault === null) },
    );
  });
  return () => {
    stop();
    abort.abort();
  };
}

export interface Live<T> {
  /** The last good answer; it stays while later ones fail. */
  readonly value: T | undefined;
  readonly fault: Fault | null;
  /** Asks now, also when paused. */
  reload(): void;
}

interface State<T> {
  key: string;
  value: T | undefined;
  fault: Fault | null;
}

/** Calls round when it is due: asked for, or after a while. */
class Agenda {
  private timer = 0;
  private due = Infinity;
  private last = 0;
  private stopped = false;

  constructor(private readonly round: () => Promise<boolean>) {}

  /** Not later than in so many milliseconds. */
  within(ms: number): void {
    const due = Date.now() + ms;
    if (this.stopped || due >= this.due) return;
    this.due = due;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.fire(), ms);
  }

  /** As soon as the pause since the last round allows. */
  soon(): void {
    this.within(Math.max(0, this.last + AT_MOST_EVERY_MS - Date.now()));
  }

  async now(): Promise<void> {
    this.clear();
    this.last = Date.now();
    const good = await this.round();
    this.within(!good ? AFTER_FAULT_MS : streaming.value ? WITH_STREAM_MS : WITHOUT_STREAM_MS);
  }

  stop(): void {
    this.stopped = true;
    this.clear();
  }

  private clear(): void {
    clearTimeout(this.timer);
    this.due = Infinity;
  }

  private async fire(): Promise<void> {
    this.due = Infinity;
    if (still.value) this.within(WITHOUT_STREAM_MS);
    else await this.now();
  }
}

/** load is called anew whenever key changes and then again and again. */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Live<T> {
  const [state, setState] = useState<State<T>>({ key, value: undefined, fault: null });
  const loader = useRef(load);
  const wake = useRef<() => void>(() => undefined);
  loader.current = load;

  useEffect(() => {
    const part = {};
    const ended = new AbortController();
    let last = new AbortController();
    note(part, {});
    const agenda = new Agenda(async () => {
      last.abort(); // the answer that is still to come is older than this one
      const own = (last = new AbortController());
      const late = AbortSignal.timeout(ANSWER_WITHIN_MS);
      const at = Date.now();
      try {
        const value = await loader.current(AbortSignal.any([ended.signal, own.signal, late]));
        if (ended.signal.aborted || own.signal.aborted) return true;
        note(part, { at, failing: false });
        setState({ key, value, fault: null });
        return true;
      } catch (error) {
        if (ended.signal.aborted || own.signal.aborted) return true;
        const fault = late.aborted ? new Fault(0, "No answer from the service", {}) : faultOf(error);
        note(part, isAnswer(fault) ? { at, failing: false } : { failing: true });
        setState((old) => ({ key, value: old.key === key ? old.value : undefined, fault }));
        return false;
      }
    });
    wake.current = () => void agenda.now();
    const stop = effect(() => {
      if (pulse.value > 0) agenda.soon();
    });
    void agenda.now();
    return () => {
      stop();
      ended.abort();
      agenda.stop();
      note(part, null);
    };
  }, [key]);

  return { value: state.value, fault: state.fault, reload: useCallback(() => wake.current(), []) };
}
