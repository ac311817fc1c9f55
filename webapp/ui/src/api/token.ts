// SPDX-License-Identifier: MIT
// The token: in the session storage of each tab and nowhere else, never in an address. A new tab of
// this browser asks those that are open for theirs; only pages of this origin hear that. When the
// last tab is closed, nothing is left.
import { signal } from "@preact/signals";

const KEY = "sluice.token";

export const token = signal<string | null>(sessionStorage.getItem(KEY));
/** Why the last token is no longer used; shown at the sign-in. */
export const lostBecause = signal<string | null>(null);

type Message = { readonly asks: true } | { readonly token: string } | { readonly signedOut: string };

const tabs = new BroadcastChannel("sluice.session");

function send(message: Message): void {
  tabs.postMessage(message);
}

function take(text: string): void {
  sessionStorage.setItem(KEY, text);
  lostBecause.value = null;
  token.value = text;
}

function drop(because: string | null): void {
  sessionStorage.removeItem(KEY);
  lostBecause.value = because;
  token.value = null;
}

tabs.onmessage = ({ data }: MessageEvent<Message>) => {
  const own = token.value;
  if ("asks" in data && own) send({ token: own });
  else if ("token" in data && !own) take(data.token);
  else if ("signedOut" in data && data.signedOut === own) drop(null);
};
if (!token.value) send({ asks: true });

export function keepToken(text: string): void {
  take(text);
  send({ token: text });
}

export function dropToken(because: string | null): void {
  drop(because);
}

/** In all tabs that have this token. */
export function endSession(): void {
  if (token.value) send({ signedOut: token.value });
  drop(null);
}
