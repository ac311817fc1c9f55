// SPDX-License-Identifier: MIT
// What applications, systems, quotas and webhooks have in common: they are made and changed by PUT,
// switched on and off, and deleted; each act is confirmed, and offered to those who may do it.
import type { ComponentChildren, JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { call, faultOf, type Fault, type Operation } from "../api/client";
import { may } from "../api/session";
import { go, href } from "../route";
import { ask, tell } from "../view/dialog";
import { FaultNotice } from "../view/notice";

export const NEW = "+"; /* nothing is called so */

type Kind = "app" | "system" | "quota" | "subscription";

/** What is acted on: the parts of its path, its version. */
export interface Target {
  readonly kind: Kind;
  readonly id: readonly string[];
}

interface Act {
  readonly route: Operation;
  readonly run: (id: readonly string[], headers: Record<string, string>) => Promise<unknown>;
  /** What it leads to. */
  readonly effect: string;
}

interface Texts {
  readonly place: string;
  readonly noun: string;
  readonly put: Operation;
  readonly enable?: Act;
  readonly disable?: Act;
  readonly remove: Act;
}

const one = ([name = ""]: readonly string[]): string => name;
const app = ([id = "", version = ""]: readonly string[]): { id: string; version: string } => ({ id, version });

export const resources: Readonly<Record<Kind, Texts>> = {
  app: {
    place: "apps",
    noun: "application",
    put: "app_put",
    enable: {
      route: "app_enable",
      run: (id) => call("app_enable", { path: app(id) }),
      effect: "Jobs that name it may run; those that wait for it are released at the next check.",
    },
    disable: {
      route: "app_disable",
      run: (id) => call("app_disable", { path: app(id) }),
      effect: "Jobs that name it are accepted but blocked until it is enabled. Jobs that run already go on.",
    },
    remove: {
      route: "app_delete",
      run: (id, headers) => call("app_delete", { path: app(id), headers }),
      effect: "Requests that name it are rejected, and jobs that name it and have not started are blocked.",
    },
  },
  system: {
    place: "systems",
    noun: "system",
    put: "system_put",
    enable: {
      route: "system_enable",
      run: (id) => call("system_enable", { path: { id: one(id) } }),
      effect: "Its jobs may run; those that wait for it are released at the next check.",
    },
    disable: {
      route: "system_disable",
      run: (id) => call("system_disable", { path: { id: one(id) } }),
      effect: "Its jobs are accepted but blocked until it is enabled. Jobs that run already go on.",
    },
    remove: {
      route: "system_delete",
      run: (id, headers) => call("system_delete", { path: { id: one(id) }, headers }),
      effect: "Requests that name it are rejected, and its jobs that have not started are blocked.",
    },
  },
  quota: {
    place: "quotas",
    noun: "quota",
    put: "quota_put",
    remove: {
      route: "quota_delete",
      run: (id, headers) => call("quota_delete", { path: { owner: one(id) }, headers }),
      effect: "The number of active jobs is not limited by it any more; jobs that wait for it go on.",
    },
  },
  subscription: {
    place: "webhooks",
    noun: "webhook",
    put: "subscription_put",
    enable: {
      route: "subscription_enable",
      run: (id) => call("subscription_enable", { path: { name: one(id) } }),
      effect: "Events are sent from now on; nothing from before is.",
    },
    disable: {
      route: "subscription_disable",
      run: (id) => call("subscription_disable", { path: { name: one(id) } }),
      effect: "Undelivered events are dropped; disabling does not pause delivery.",
    },
    remove: {
      route: "subscription_delete",
      run: (id, headers) => call("subscription_delete", { path: { name: one(id) }, headers }),
      effect: "Undelivered events are dropped, and its secret is gone.",
    },
  },
};

export function nameOf({ kind, id }: Target): string {
  return `${resources[kind].noun} ${id.join(" ")}`;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function question(target: Target, verb: "Enable" | "Disable", act: Act, onDone: () => void): void {
  ask({
    title: `${verb} ${nameOf(target)}?`,
    body: <p>{act.effect}</p>,
    act: `${verb} 1 ${resources[target.kind].noun}`,
    danger: verb === "Disable",
    run: async () => {
      await act.run(target.id, {});
      onDone();
      return `${capital(nameOf(target))} is ${verb.toLowerCase()}d.`;
    },
  });
}

/** Enable or Disable, whichever it is not. named: the button says of what. */
export function Switch(props: { target: Target; enabled: boolean; onDone: () => void; named?: boolean }): JSX.Element | null {
  const { target, enabled, onDone } = props;
  const act = enabled ? resources[target.kind].disable : resources[target.kind].enable;
  if (!act || !may(act.route)) return null;
  const verb = enabled ? "Disable" : "Enable";
  return (
    <button type="button" class={enabled ? "danger" : ""} onClick={() => question(target, verb, act, onDone)}>
      {verb}
      {props.named && ` ${nameOf(target)}`}
    </button>
  );
}

export function Delete({ target, version }: { target: Target; version: number }): JSX.Element | null {
  const { noun, place, remove } = resources[target.kind];
  if (!may(remove.route)) return null;
  const onClick = (): void =>
    ask({
      title: `Delete ${nameOf(target)}?`,
      body: <p>{remove.effect}</p>,
      act: `Delete 1 ${noun}`,
      danger: true,
      run: async () => {
        await remove.run(target.id, { "If-Match": `"${version}"` });
        go([place]);
        return `${capital(nameOf(target))} was deleted.`;
      },
    });
  return (
    <button type="button" class="danger" onClick={onClick}>
      Delete
    </button>
  );
}

/** The heading of a list, with the way to a new one for those who may make it. */
export function ListHead({ kind, title, lead }: { kind: Kind; title: string; lead: string }): JSX.Element {
  const { place, noun, put } = resources[kind];
  return (
    <>
      <div class="bar">
        <h1>{title}</h1>
        {may(put) && (
          <a class="button" href={href([place, NEW])}>
            New {noun}
          </a>
        )}
      </div>
      <p class="lead">{lead}</p>
    </>
  );
}

export function Trail({ kind, title }: { kind: Kind; title: string }): JSX.Element {
  return (
    <p class="trail">
      <a href={href([resources[kind].place])}>{title}</a>
    </p>
  );
}

/** The form of one: saved only if nobody has changed it meanwhile. version: of what is there. */
export function Editor<B>(props: {
  kind: Kind;
  id: readonly string[];
  version: number | undefined;
  body: B;
  fields: (body: B, onBody: (body: B) => void) => ComponentChildren;
  ready?: (body: B) => boolean;
  save: (body: B, headers: Record<string, string>) => Promise<number>;
  onDone: () => void;
}): JSX.Element {
  const { kind, id, save, onDone } = props;
  const [body, setBody] = useState(props.body);
  const [fault, setFault] = useState<Fault | null>(null);
  // What the form began with. As long as that is what is there, only a switch has made a new version.
  const base = useRef({ text: JSON.stringify(props.body), version: props.version ?? 0 });
  const isNew = props.version === undefined;
  if (!isNew && JSON.stringify(props.body) === base.current.text)
    base.current.version = Math.max(base.current.version, props.version ?? 0);
  const run = async (): Promise<void> => {
    try {
      const headers: Record<string, string> = isNew ? { "If-None-Match": "*" } : { "If-Match": `"${base.current.version}"` };
      base.current = { version: await save(body, headers), text: JSON.stringify(body) };
      setFault(null);
      tell(`${capital(nameOf({ kind, id }))} is saved.`);
      onDone();
    } catch (error) {
      setFault(faultOf(error));
    }
  };
  const ready = id.every(Boolean) && (props.ready?.(body) ?? true);
  return (
    <section class="form">
      <div class="fields">{props.fields(body, setBody)}</div>
      {fault && <FaultNotice fault={fault} />}
      <div class="acts">
        <button type="button" class="main" disabled={!ready} onClick={() => void run()}>
          Save
        </button>
      </div>
    </section>
  );
}
