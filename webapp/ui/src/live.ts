// SPDX-License-Identifier: MIT
// The one place that keeps what is shown fresh. Whatever changes is asked for again every few
// seconds while the tab can be seen and nobody has paused it.
import { signal } from "@preact/signals";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { faultOf, type Fault } from "./api/client";

export const paused = signal(false);

const EVERY_MS = 2000;
const AFTER_FAULT_MS = 4000;

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

/** load is called anew whenever key changes and then again and again. */
export function useLive<T>(key: string, load: (signal: AbortSignal) => Promise<T>, everyMs = EVERY_MS): Live<T> {
  const [state, setState] = useState<State<T>>({ key, value: undefined, fault: null });
  const loader = useRef(load);
  const wake = useRef<() => void>(() => undefined);
  loader.current = load;

  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    const round = async (): Promise<void> => {
      clearTimeout(timer);
      try {
        const value = await loader.current(abort.signal);
        if (!abort.signal.aborted) setState({ key, value, fault: null });
        schedule(everyMs);
      } catch (error) {
        if (abort.signal.aborted) return;
        const fault = faultOf(error);
        setState((old) => ({ key, value: old.key === key ? old.value : undefined, fault }));
        schedule(AFTER_FAULT_MS);
      }
    };
    const schedule = (ms: number): void => {
      clearTimeout(timer);
      if (abort.signal.aborted) return;
      timer = window.setTimeout(() => (paused.value || document.hidden ? schedule(ms) : void round()), ms);
    };
    wake.current = () => void round();
    void round();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, everyMs]);

  return { value: state.value, fault: state.fault, reload: useCallback(() => wake.current(), []) };
}
