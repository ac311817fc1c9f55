// SPDX-License-Identifier: MIT
// Where we are: the part of the address behind '#', "#/jobs/ID?filter=...".
import { signal } from "@preact/signals";

export interface Place {
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

/** As it was typed, if it is no text: an address that cannot be read leads to what is not there. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { parts: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

export const place = signal<Place>(read());
addEventListener("hashchange", () => (place.value = read()));

export function href(parts: readonly string[], query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const tail = given.length > 0 ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${tail}`;
}

export function go(parts: readonly string[], query: Record<string, string | undefined> = {}): void {
  location.hash = href(parts, query);
}

/** The same place with some of its query changed; no new entry in the history. */
export function adjust(change: Record<string, string | undefined>): void {
  const query = { ...Object.fromEntries(place.value.query), ...change };
  history.replaceState(null, "", href(place.value.parts, query));
  place.value = read();
}
