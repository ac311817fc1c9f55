// SPDX-License-Identifier: MIT
// The token: in this tab's session storage and nowhere else, never in an address.
import { signal } from "@preact/signals";

const KEY = "sluice.token";

export const token = signal<string | null>(sessionStorage.getItem(KEY));
/** Why the last token is no longer used; shown at the sign-in. */
export const lostBecause = signal<string | null>(null);

export function keepToken(text: string): void {
  sessionStorage.setItem(KEY, text);
  lostBecause.value = null;
  token.value = text;
}

export function dropToken(because: string | null): void {
  sessionStorage.removeItem(KEY);
  lostBecause.value = because;
  token.value = null;
}
