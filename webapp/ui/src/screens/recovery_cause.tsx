// SPDX-License-Identifier: MIT
// What holds jobs, as far as the page has a screen for it: the way there, and Enable where that is
// the cure.
import type { JSX } from "preact";
import { href } from "../route";
import { nameOf, resources, Switch, type Target } from "./resource";

export interface Cause {
  readonly tester: string;
  readonly params: Record<string, unknown> | null;
}

type Params = Record<string, string>;

/** By the tester that looks whether it has cleared. */
const PLACES: Readonly<Record<string, (params: Params) => Target>> = {
  app_enabled: ({ app = "", version = "" }) => ({ kind: "app", id: [app, version] }),
  system_enabled: ({ system = "" }) => ({ kind: "system", id: [system] }),
  quota: ({ scope, owner = "", system = "" }) =>
    scope === "tenant" ? { kind: "quota", id: ["*"] } : system ? { kind: "system", id: [system] } : { kind: "quota", id: [owner] },
};

function targetOf(cause: Cause): Target | null {
  return PLACES[cause.tester]?.((cause.params ?? {}) as Params) ?? null;
}

export function CauseLink({ cause }: { cause: Cause }): JSX.Element | null {
  const target = targetOf(cause);
  if (!target) return null;
  const name = nameOf(target);
  return <a href={href([resources[target.kind].place, ...target.id])}>{name.charAt(0).toUpperCase() + name.slice(1)}</a>;
}

/** For a cause that somebody has switched off. */
export function CauseSwitch({ cause, onDone }: { cause: Cause; onDone: () => void }): JSX.Element | null {
  const target = targetOf(cause);
  if (!target || !cause.tester.endsWith("_enabled")) return null;
  return <Switch target={target} enabled={false} onDone={onDone} named />;
}
