// SPDX-License-Identifier: MIT
// Webhooks: who is sent the events of all jobs. A secret is shown once, when it is made.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client";
import { may } from "../api/session";
import { ended, states, type Status, type Subscription, type SubscriptionMade, type SubscriptionPut } from "../generated/contract";
import { useLive } from "../live";
import { go, href } from "../route";
import { Details } from "../view/details";
import { ask } from "../view/dialog";
import { TextField } from "../view/fields";
import { Empty, Loaded } from "../view/notice";
import { State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";
import { Delete, Editor, ListHead, NEW, Switch, Trail } from "./resource";

/** The secret that was made last, until somebody goes elsewhere. */
const made = signal<{ readonly name: string; readonly secret: string } | null>(null);

function keep(answer: SubscriptionMade): void {
  if (answer.secret) made.value = { name: answer.name, secret: answer.secret };
}

const columns = (reload: () => void): readonly Column<Subscription>[] => [
  { key: "name", head: "Webhook", cell: (hook) => <a href={href(["webhooks", hook.name])}>{hook.name}</a> },
  { key: "state", head: "State", cell: (hook) => <State of={hook.enabled ? "enabled" : "disabled"} /> },
  { key: "url", head: "Address", wide: true, cell: (hook) => <code>{hook.url}</code> },
  { key: "states", head: "Events", wide: true, cell: (hook) => hook.states.map(words).join(", ") },
  { key: "owner", head: "Created by", cell: (hook) => hook.owner },
  {
    key: "acts",
    head: "Actions",
    cell: (hook) => <Switch target={{ kind: "subscription", id: [hook.name] }} enabled={hook.enabled} onDone={reload} />,
  },
];

export function Webhooks(): JSX.Element {
  const live = useLive("webhooks", (abort) => call("subscription_list", { signal: abort }));
  return (
    <>
      <ListHead kind="subscription" title="Webhooks" lead="Receivers of the events of all jobs, sent as signed HTTP requests." />
      <Loaded live={live}>
        {({ subscriptions }) => (
          <Table
            label="Webhooks"
            columns={columns(live.reload)}
            rows={subscriptions}
            idOf={(hook) => hook.name}
            empty={
              <Empty title="There is no webhook">
                <p>Programs that want to know when jobs end subscribe here, or per job.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </>
  );
}

function StateBoxes({ chosen, onChosen }: { chosen: readonly Status[]; onChosen: (chosen: Status[]) => void }): JSX.Element {
  const toggle = (state: Status): void =>
    onChosen(states.filter((one) => (one === state ? !chosen.includes(one) : chosen.includes(one))));
  return (
    <fieldset class="field whole choices">
      <legend>Sent when a job becomes</legend>
      {states.map((state) => (
        <label key={state} class="inline">
          <input type="checkbox" checked={chosen.includes(state)} onChange={() => toggle(state)} />
          {words(state)}
        </label>
      ))}
    </fieldset>
  );
}

function bodyOf(hook: Subscription | null): SubscriptionPut {
  return { url: hook?.url ?? "", states: hook?.states ?? ended, description: hook?.description ?? "" };
}

function Form({ hook, onDone }: { hook: Subscription | null; onDone: () => void }): JSX.Element {
  const [name, setName] = useState(hook?.name ?? "");
  const save = async (body: SubscriptionPut, headers: Record<string, string>): Promise<number> => {
    const answer = await call("subscription_put", { path: { name }, body, headers });
    keep(answer);
    return answer.version;
  };
  return (
    <Editor
      kind="subscription"
      id={[name]}
      version={hook?.version}
      body={bodyOf(hook)}
      ready={(body) => Boolean(body.url && body.states?.length)}
      save={save}
      onDone={() => (hook ? onDone() : go(["webhooks", name]))}
      fields={(body, onBody) => (
        <>
          {!hook && <TextField id="name" label="Name; letters, digits, “.”, “_” and “-”" value={name} onValue={setName} />}
          <TextField
            id="url"
            label="Address (URL)"
            whole
            placeholder="https://portal.example/hooks/sluice"
            value={body.url}
            onValue={(url) => onBody({ ...body, url })}
          />
          <StateBoxes chosen={body.states ?? []} onChosen={(chosen) => onBody({ ...body, states: chosen })} />
          <TextField
            id="description"
            label="Description"
            whole
            value={body.description ?? ""}
            onValue={(description) => onBody({ ...body, description })}
          />
        </>
      )}
    />
  );
}

function rotate(name: string, onDone: () => void): void {
  ask({
    title: `Make a new secret for webhook ${name}?`,
    body: <p>The new secret is shown once. The old one signs as well for a while, so that the receiver can change over.</p>,
    act: "Rotate 1 secret",
    run: async () => {
      keep(await call("subscription_rotate", { path: { name } }));
      onDone();
      return `Webhook ${name} has a new secret.`;
    },
  });
}

function Secret({ name }: { name: string }): JSX.Element | null {
  useEffect(() => () => void (made.value = null), []);
  if (made.value?.name !== name) return null;
  return (
    <div class="notice" role="status">
      <p>
        <strong>The secret that signs its deliveries. Copy it now: it is not shown again.</strong>
      </p>
      <p>
        <code>{made.value.secret}</code>
      </p>
    </div>
  );
}

function Existing({ name }: { name: string }): JSX.Element {
  const live = useLive(name, (abort) => call("subscription_get", { path: { name }, signal: abort }));
  const target = { kind: "subscription", id: [name] } as const;
  return (
    <Loaded live={live}>
      {(hook) => (
        <>
          <div class="bar">
            <h1>Webhook {hook.name}</h1>
            <State of={hook.enabled ? "enabled" : "disabled"} />
            <div class="acts">
              {may("subscription_rotate") && (
                <button type="button" onClick={() => rotate(name, live.reload)}>
                  Rotate secret
                </button>
              )}
              <Switch target={target} enabled={hook.enabled} onDone={live.reload} />
              <Delete target={target} version={hook.version} />
            </div>
          </div>
          <Secret name={name} />
          <Details
            of={[
              ["Address", !may("subscription_put") && <code>{hook.url}</code>, true],
              ["Events", !may("subscription_put") && hook.states.map(words).join(", "), true],
              ["Created by", hook.owner],
              ["Created", <Time at={hook.created} />],
              ["Changed", <Time at={hook.updated} />],
              ["Deliveries", <a href={href(["deliveries"], { subscription: name })}>its deliveries</a>],
            ]}
          />
          {may("subscription_put") && <Form hook={hook} onDone={live.reload} />}
        </>
      )}
    </Loaded>
  );
}

export function WebhookScreen({ id }: { id: string }): JSX.Element {
  return (
    <>
      <Trail kind="subscription" title="Webhooks" />
      {id === NEW && may("subscription_put") ? (
        <>
          <h1>New webhook</h1>
          <Form hook={null} onDone={() => undefined} />
        </>
      ) : (
        <Existing name={id} />
      )}
    </>
  );
}
