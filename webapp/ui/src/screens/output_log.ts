// SPDX-License-Identifier: MIT
// What a job has written, as far as it is loaded: its last part first, earlier parts when they are
// asked for, and whatever comes meanwhile. Lines of both streams stand in the order in which they
// came; what was there before is in the order of the streams, as files tell no times.
import { signal } from "@preact/signals";
import { faultOf, fetchRoute, type Fault } from "../api/client";
import { listen, pause, type Cursor, type ServerEvent } from "../api/sse";
import { parseLine, PLAIN, type Span, type Style } from "../view/ansi";

export const STREAMS = ["stdout", "stderr"] as const;
export type Stream = (typeof STREAMS)[number];

const TAIL_BYTES = 64 * 1024;
const EARLIER_BYTES = 256 * 1024;
export const MOST_LINES = 10_000;
const MOST_CHARACTERS = 1_000_000;
const LINE_CHARACTERS = 8192; // a longer one is broken
const SPAN_WEIGHT = 16; // in characters: a page of coloured letters costs more than one of text
const SHOWN_EVERY_MS = 100;
const AGAIN_MS = 2000;
const NEWLINE = 10;

export interface Line {
  readonly id: number;
  readonly stream: Stream;
  readonly spans: readonly Span[];
  readonly text: string;
}

function broken(text: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at === 0 || at < text.length; at += LINE_CHARACTERS) parts.push(text.slice(at, at + LINE_CHARACTERS));
  return parts;
}

function weight(line: Line | undefined): number {
  return line ? line.text.length + SPAN_WEIGHT * line.spans.length : 0;
}

interface Reading {
  /** Of the first byte that is loaded; null: nothing was asked for yet. */
  first: number | null;
  readonly cursor: Cursor;
  ended: boolean;
  decoder: TextDecoder;
  /** The end of the text, no line yet. */
  rest: string;
  style: Style;
  /** Lines that were let go at the front. */
  dropped: number;
}

function fresh(first: number | null): Reading {
  return { first, cursor: { id: "" }, ended: false, decoder: new TextDecoder(), rest: "", style: PLAIN, dropped: 0 };
}

interface Part {
  readonly bytes: Uint8Array;
  readonly offset: number;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** From the first whole line on, and of so many lines the last. */
function wholeLines({ bytes, offset }: Part, most: number): Part {
  let at = bytes.length;
  for (let lines = 0; lines <= most && at > 0; lines++) at = bytes.lastIndexOf(NEWLINE, at - 1);
  if (at > 0) return { bytes: bytes.subarray(at + 1), offset: offset + at + 1 };
  if (offset === 0) return { bytes, offset };
  const begin = bytes.indexOf(NEWLINE) + 1;
  const end = bytes.length;
  // A line that is longer than the part: from its first whole character on.
  const from = begin > 0 && begin < end ? begin : Math.max(0, bytes.findIndex((byte) => (byte & 0xc0) !== 0x80));
  return { bytes: bytes.subarray(from), offset: offset + from };
}

export class OutputLog {
  /** Rises when there is more to show. */
  readonly changed = signal(0);
  fault: Fault | null = null;
  private readonly streams: Record<Stream, Reading> = { stdout: fresh(null), stderr: fresh(null) };
  private lines: Line[] = [];
  private characters = 0;
  private made = 0;
  private timer = 0;

  constructor(private readonly job: string) {}

  /** Lines that are whole, and the ends of those that are not. */
  shown(of: readonly Stream[]): readonly Line[] {
    const all = of.length === STREAMS.length ? this.lines : this.lines.filter((line) => of.includes(line.stream));
    const open = of.filter((stream) => this.streams[stream].rest).map((stream) => this.openLine(stream));
    return [...all, ...open];
  }

  /** Bytes that are not loaded before those that are; 0 as well if no more may be loaded. */
  earlier(stream: Stream): number {
    const { first, dropped } = this.streams[stream];
    return dropped > 0 || this.isFull() ? 0 : (first ?? 0);
  }

  /** Whether the page has left something out that it cannot load. */
  leavesOut(stream: Stream): boolean {
    const { first, dropped } = this.streams[stream];
    return dropped > 0 || (this.isFull() && Boolean(first));
  }

  /** The number of the line before the first one that is loaded; null: not known. */
  linesBefore(stream: Stream): number | null {
    const { first, dropped } = this.streams[stream];
    return first === 0 ? dropped : null;
  }

  isFollowing(of: readonly Stream[]): boolean {
    return of.some((stream) => !this.streams[stream].ended);
  }

  /** Loads what is there and follows; the answer ends it. hasEnded: no more will come. */
  start(hasEnded: boolean): () => void {
    const abort = new AbortController();
    for (const stream of STREAMS) void this.read(stream, hasEnded, abort.signal);
    return () => abort.abort();
  }

  async loadEarlier(stream: Stream): Promise<void> {
    const reading = this.streams[stream];
    const { first } = reading;
    if (!first) return;
    try {
      const part = await this.part(stream, `bytes=${Math.max(0, first - EARLIER_BYTES)}-${first - 1}`);
      if (reading.first !== first) return; // it was begun anew, or asked for twice
      const whole = wholeLines(part, MOST_LINES - this.lines.length);
      reading.first = whole.offset;
      this.prepend(stream, new TextDecoder().decode(whole.bytes));
      this.fault = null;
    } catch (error) {
      this.fault = faultOf(error);
    }
    this.show();
  }

  private isFull(): boolean {
    return this.lines.length >= MOST_LINES || this.characters >= MOST_CHARACTERS;
  }

  private async read(stream: Stream, hasEnded: boolean, abort: AbortSignal): Promise<void> {
    while (!abort.aborted && this.streams[stream].first === null) {
      try {
        await this.readTail(stream, hasEnded, abort);
      } catch (error) {
        if (abort.aborted) return;
        this.fault = faultOf(error);
        // What is gone or not allowed does not come back.
        this.streams[stream].ended = this.fault.status >= 400 && this.fault.status < 500 && this.fault.status !== 429;
        this.show();
        if (this.streams[stream].ended) return;
        await pause(AGAIN_MS, abort);
      }
    }
    if (!abort.aborted && !this.streams[stream].ended) await this.follow(stream, abort);
  }

  private async readTail(stream: Stream, hasEnded: boolean, abort: AbortSignal): Promise<void> {
    const reading = this.streams[stream];
    const tail = wholeLines(await this.part(stream, `bytes=-${TAIL_BYTES}`, abort), MOST_LINES / 2);
    reading.first = tail.offset;
    reading.cursor.id = String(tail.offset + tail.bytes.length);
    reading.ended = hasEnded;
    this.fault = null;
    this.append(stream, tail.bytes);
  }

  private async follow(stream: Stream, outer: AbortSignal): Promise<void> {
    const abort = new AbortController();
    outer.addEventListener("abort", () => abort.abort(), { once: true });
    const onEvent = (event: ServerEvent): void => {
      if (event.type === "output") this.append(stream, bytesOf(event.data));
      else if (event.type === "restarted") this.restart(stream);
      else if (event.type === "end") {
        this.streams[stream].ended = true;
        this.show();
        abort.abort();
      }
    };
    const onState = (fault: Fault | null): void => {
      this.fault = fault;
      this.show();
    };
    await listen(
      "job_output",
      { path: { id: this.job, stream }, query: { follow: true }, signal: abort.signal },
      { onEvent, onState },
      this.streams[stream].cursor,
    );
  }

  private async part(stream: Stream, range: string, abort?: AbortSignal): Promise<Part> {
    const answer = await fetchRoute("job_output", { path: { id: this.job, stream }, headers: { Range: range }, signal: abort });
    const offset = Number(/^bytes (\d+)-/.exec(answer.headers.get("Content-Range") ?? "")?.[1] ?? 0);
    return { bytes: new Uint8Array(await answer.arrayBuffer()), offset };
  }

  private lineOf(stream: Stream, text: string, style: Style): [Line, Style] {
    const parsed = parseLine(text, style);
    const plain = parsed.spans.map((span) => span.text).join("");
    return [{ id: this.made++, stream, spans: parsed.spans, text: plain }, parsed.style];
  }

  private openLine(stream: Stream): Line {
    const { rest, style } = this.streams[stream];
    const [line] = this.lineOf(stream, rest, style);
    return { ...line, id: -1 - STREAMS.indexOf(stream) };
  }

  private append(stream: Stream, bytes: Uint8Array): void {
    const reading = this.streams[stream];
    const parts = (reading.rest + reading.decoder.decode(bytes, { stream: true })).split("\n");
    const last = broken(parts.pop() ?? "");
    reading.rest = last.pop() ?? "";
    for (const part of [...parts.flatMap(broken), ...last]) {
      const [line, style] = this.lineOf(stream, part, reading.style);
      reading.style = style;
      this.lines.push(line);
      this.characters += weight(line);
    }
    this.letGo();
    this.show();
  }

  /** Before the other lines of this stream, behind those of the streams before it. */
  private prepend(stream: Stream, text: string): void {
    const parts = text.split("\n");
    if (parts.at(-1) === "") parts.pop();
    let style = PLAIN;
    const fresh = parts.flatMap(broken).map((part) => {
      const [line, next] = this.lineOf(stream, part, style);
      style = next;
      return line;
    });
    const at = this.lines.findIndex((line) => line.stream === stream);
    this.lines.splice(Math.max(0, at), 0, ...fresh);
    this.characters += fresh.reduce((sum, line) => sum + weight(line), 0);
  }

  private letGo(): void {
    let count = Math.max(0, this.lines.length - MOST_LINES);
    let over = this.characters - MOST_CHARACTERS;
    for (const line of this.lines.slice(0, count)) over -= weight(line);
    while (over > 0 && count < this.lines.length) over -= weight(this.lines[count++]);
    for (const line of this.lines.splice(0, count)) {
      this.streams[line.stream].dropped++;
      this.characters -= weight(line);
    }
  }

  private restart(stream: Stream): void {
    const { cursor } = this.streams[stream];
    this.streams[stream] = { ...fresh(0), cursor };
    this.lines = this.lines.filter((line) => line.stream !== stream);
    this.characters = this.lines.reduce((sum, line) => sum + weight(line), 0);
    this.show();
  }

  private show(): void {
    if (this.timer) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.changed.value++;
    }, SHOWN_EVERY_MS);
  }
}
