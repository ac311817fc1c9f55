// SPDX-License-Identifier: MIT
// Server-sent events by fetch: EventSource cannot send a token. A stream that is cut is taken up
// again behind its last event.
import { Fault, faultOf, fetchRoute, type CallOptions, type Operation } from "./client";

export interface ServerEvent {
  readonly type: string;
  readonly id: string;
  readonly data: string;
}

export interface Listener {
  onEvent(event: ServerEvent): void;
  /** null: connected. Otherwise it is tried again, unless `final`. */
  onState(fault: Fault | null, final: boolean): void;
}

const AGAIN_MS = [500, 1000, 2000, 5000];

/** How far a listener has got: the id of the last event. */
export interface Cursor {
  id: string;
}

/** Cuts the text of a stream into events. */
class Parser {
  private rest = "";
  constructor(private readonly cursor: Cursor) {}

  *push(text: string): Generator<ServerEvent> {
    this.rest += text;
    for (let end = this.rest.indexOf("\n\n"); end >= 0; end = this.rest.indexOf("\n\n")) {
      const block = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + 2);
      const event = this.read(block);
      if (event) yield event;
    }
  }

  private read(block: string): ServerEvent | null {
    let type = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "event") type = value;
      else if (name === "id") this.cursor.id = value;
      else if (name === "data") data.push(value);
    }
    return data.length > 0 || type !== "message" ? { type, id: this.cursor.id, data: data.join("\n") } : null;
  }
}

type StreamOptions<N extends Operation> = CallOptions<N> & {
  signal: AbortSignal;
  /** A stream that sends nothing for so long is taken to be dead; none: it may be silent. */
  quietMs?: number;
};

/** A signal that comes when nothing was heard for so long. */
class Watchdog {
  private readonly abort = new AbortController();
  private timer: number | undefined;
  readonly signal = this.abort.signal;

  constructor(private readonly ms: number | undefined) {
    this.heard();
  }

  heard(): void {
    clearTimeout(this.timer);
    if (this.ms !== undefined) this.timer = window.setTimeout(() => this.abort.abort(), this.ms);
  }

  stop(): void {
    clearTimeout(this.timer);
  }
}

async function readOnce<N extends Operation>(
  name: N,
  options: StreamOptions<N>,
  cursor: Cursor,
  listener: Listener,
): Promise<void> {
  const parser = new Parser(cursor);
  const watchdog = new Watchdog(options.quietMs);
  const signal = AbortSignal.any([options.signal, watchdog.signal]);
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (cursor.id) headers["Last-Event-ID"] = cursor.id;
  try {
    const answer = await fetchRoute(name, { ...options, headers, signal });
    listener.onState(null, false);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const part = await reader?.read();
      if (!part || part.done) return;
      watchdog.heard();
      for (const event of parser.push(part.value)) listener.onEvent(event);
    }
  } catch (error) {
    if (watchdog.signal.aborted) throw new Fault(0, "The stream has sent nothing for too long", {});
    throw error;
  } finally {
    watchdog.stop();
  }
}

/** Where a stream of events is now: the id that it begins with. */
export async function streamPlace<N extends Operation>(name: N, options: CallOptions<N> & { signal: AbortSignal }): Promise<number> {
  const own = new AbortController();
  try {
    const signal = AbortSignal.any([options.signal, own.signal]);
    const answer = await fetchRoute(name, { ...options, headers: { Accept: "text/event-stream" }, signal });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ""; reader; ) {
      const part = await reader.read();
      if (part.done) break;
      text += part.value;
      const id = /^id: (\d+)$/m.exec(text)?.[1];
      if (id) return Number(id);
    }
    return 0;
  } finally {
    own.abort();
  }
}

export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** Listens behind the cursor, which moves along, until the signal comes. */
export async function listen<N extends Operation>(
  name: N,
  options: StreamOptions<N>,
  listener: Listener,
  cursor: Cursor = { id: "" },
): Promise<void> {
  for (let tries = 0; !options.signal.aborted; tries++) {
    const before = cursor.id;
    try {
      await readOnce(name, options, cursor, listener);
    } catch (error) {
      if (options.signal.aborted) return;
      const fault = faultOf(error);
      const final = fault.status >= 400 && fault.status < 500 && fault.status !== 429;
      listener.onState(fault, final);
      if (final) return;
    }
    if (cursor.id !== before) tries = 0;
    await pause(AGAIN_MS[Math.min(tries, AGAIN_MS.length - 1)] ?? 5000, options.signal);
  }
}
