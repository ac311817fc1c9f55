// SPDX-License-Identifier: MIT
// What programs write for a terminal (ECMA-48), as spans of text with classes: colours and weights are
// kept, everything else that a terminal would obey is left out. Nothing becomes markup.

export interface Span {
  readonly text: string;
  /** Of style/output.css; empty: plain. */
  readonly look: string;
}

export interface Style {
  readonly front: number | null; // one of the eight colours
  readonly back: number | null;
  readonly marks: ReadonlySet<string>;
}

export const PLAIN: Style = { front: null, back: null, marks: new Set() };

const MOST_PARAMETERS = 128; // characters; terminals take 16 numbers or so
const GREY = 0;
const INK = 7;

// Control sequences, strings of the operating system and of devices, other escapes; then single
// controls: C0 without the tab, DEL, C1.
const SEQUENCE = /\x1b\[([0-9;:<=>?]*)[ -/]*([@-~]?)/;
const STRING = /\x1b[\]PX^_](?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)?/;
const OTHER = /\x1b[ -/]*[0-~]?|[\x00-\x08\x0a-\x1f\x7f-\x9f]/;
const CONTROL = new RegExp([SEQUENCE, STRING, OTHER].map((one) => one.source).join("|"), "g");

const SET: Readonly<Record<number, string>> = { 1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "inverse", 9: "strike" };
const UNSET: Readonly<Record<number, readonly string[]>> = {
  22: ["bold", "dim"],
  23: ["italic"],
  24: ["under"],
  27: ["inverse"],
  29: ["strike"],
};

/** The nearest of the eight: those have enough contrast in both themes. */
function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most < 140 ? GREY : INK;
  const middle = (most + least) / 2;
  return Number(red > middle) + 2 * Number(green > middle) + 4 * Number(blue > middle);
}

function ofPalette(index: number): number {
  if (index < 8) return index;
  if (index < 16) return index === 8 ? GREY : index - 8;
  if (index >= 232) return index < 244 ? GREY : INK;
  const level = (step: number): number => (step % 6) * 51;
  const at = index - 16;
  return nearest(level(Math.floor(at / 36)), level(Math.floor(at / 6)), level(at));
}

/** What follows 38 or 48, and how many numbers that was. */
function extended(codes: readonly number[]): [number | null, number] {
  const [kind, ...rest] = codes;
  if (kind === 5) return [ofPalette(Math.min(255, rest[0] ?? 0)), 2];
  if (kind === 2) return [nearest(rest[0] ?? 0, rest[1] ?? 0, rest[2] ?? 0), 4];
  return [null, 1];
}

function changed(style: Style, parameters: string): Style {
  if (parameters.length > MOST_PARAMETERS) return style;
  const codes = parameters.split(/[;:]/).map((code) => Math.min(Number.parseInt(code, 10) || 0, 65535));
  let { front, back } = style;
  const marks = new Set(style.marks);
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    const mark = SET[code];
    if (code === 0) {
      front = back = null;
      marks.clear();
    } else if (mark) marks.add(mark);
    else if (UNSET[code]) for (const one of UNSET[code]) marks.delete(one);
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(codes.slice(at + 1, at + 5));
      if (code === 38) front = colour;
      else back = colour;
      at += used;
    } else if (code === 39) front = null;
    else if (code === 49) back = null;
    else if (code >= 30 && code <= 37) front = code - 30;
    else if (code >= 40 && code <= 47) back = code - 40;
    else if (code >= 90 && code <= 97) front = ofPalette(code - 82);
    else if (code >= 100 && code <= 107) back = ofPalette(code - 92);
  }
  return { front, back, marks };
}

function lookOf({ front, back, marks }: Style): string {
  const inverse = marks.has("inverse");
  const behind = inverse ? (front ?? INK) : back;
  const names = [...marks].filter((mark) => mark !== "inverse");
  // On a coloured ground the letters keep the colour of the text: two hues may be too close.
  if (behind !== null) names.push(`back${behind}`);
  else if (front !== null) names.push(`front${front}`);
  return names.join(" ");
}

/** One line, from the style on that the line before ended with. A carriage return writes it anew. */
export function parseLine(line: string, style: Style): { spans: readonly Span[]; style: Style } {
  let spans: Span[] = [];
  let returned = false;
  let now = style;
  const put = (text: string): void => {
    if (!text) return;
    if (returned) spans = [];
    returned = false;
    spans.push({ text, look: lookOf(now) });
  };
  let from = 0;
  for (const match of line.matchAll(CONTROL)) {
    put(line.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m" && /^[0-9;:]*$/.test(match[1] ?? "")) now = changed(now, match[1] ?? "");
    else if (match[0] === "\r") returned = true;
  }
  put(line.slice(from));
  return { spans, style: now };
}
