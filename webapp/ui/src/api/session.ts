// SPDX-License-Identifier: MIT
// Who the token says we are, and what that allows: the service's own table of routes decides, so
// nothing is offered that would be refused.
import { effect, signal } from "@preact/signals";
import { routes, type Identity } from "../generated/contract";
import { call, faultOf, type Fault, type Operation } from "./client";
import { endSession, keepToken, token } from "./token";

export const identity = signal<Identity | null>(null);
export const sessionFault = signal<Fault | null>(null);

// Whoever signs in next is somebody else until the service has said who. The token may come from
// another tab.
effect(() => {
  if (token.value) void resume();
  else identity.value = null;
});

function hasRole(least: string): boolean {
  return least === "public" || (identity.value?.roles ?? []).some((role) => role === least);
}

/** Whether this may be called at all, on what is our own. */
export function may(name: Operation): boolean {
  return hasRole(routes[name].least);
}

/** Whether this may be done to a job of this owner. */
export function mayOn(name: Operation, owner: string): boolean {
  return may(name) && (owner === identity.value?.user || hasRole(routes[name].others));
}

/** Whether this may be done to the jobs of everybody. */
export function mayOnAll(name: Operation): boolean {
  return hasRole(routes[name].others);
}

/** Asks who the kept token belongs to. */
export async function resume(): Promise<void> {
  const asked = token.peek();
  if (!asked) return;
  try {
    const who = await call("whoami", {});
    if (token.peek() !== asked) return;
    identity.value = who;
    sessionFault.value = null;
  } catch (error) {
    const fault = faultOf(error);
    if (fault.status !== 401) sessionFault.value = fault;
  }
}

export function signIn(text: string): void {
  keepToken(text.trim());
}

export function signOut(): void {
  endSession();
}
