// SPDX-License-Identifier: MIT
// The one place that keeps what is shown fresh. The stream of events tells that something happened
// to jobs; whatever is shown is then asked for again, and now and then in any case for what no event
// tells (beats, depths). All of it stands still while it is paused or the tab cannot be seen.
import { computed, effect, signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { faultOf, type Fault } from "./api/client";
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
      { signal: abort.signal },
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
    const abort = new AbortController();
    const agenda = new Agenda(async () => {
      try {
        const value = await loader.current(abort.signal);
        if (!abort.signal.aborted) setState({ key, value, fault: null });
        return true;
      } catch (error) {
        const fault = faultOf(error);
        if (!abort.signal.aborted)
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
      abort.abort();
      agenda.stop();
    };
  }, [key]);

  return { value: state.value, fault: state.fault, reload: useCallback(() => wake.current(), []) };
}
