// SPDX-License-Identifier: MIT
// Applications: defaults of requests, by id and version.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, Fault } from "../api/client";
import { may } from "../api/session";
import type { App, AppPut } from "../generated/contract";
import { useLive } from "../live";
import { go, href } from "../route";
import { Details } from "../view/details";
import { TextField } from "../view/fields";
import { Empty, Loaded } from "../view/notice";
import { PAGE, Paged } from "../view/paged";
import { State } from "../view/state";
import type { Column } from "../view/table";
import { Time } from "../view/time";
import { Delete, Editor, ListHead, NEW, Switch, Trail } from "./resource";

const EXAMPLE = `{
  "command": ["convert"],
  "maxMinutes": 60
}`;

const idOf = (app: App): readonly [string, string] => [app.id, app.version];

const columns = (reload: () => void): readonly Column<App>[] => [
  { key: "id", head: "Application", cell: (app) => <a href={href(["apps", ...idOf(app)])}>{idOf(app).join(" ")}</a> },
  { key: "state", head: "State", cell: (app) => <State of={app.enabled ? "enabled" : "disabled"} /> },
  { key: "command", head: "Command", wide: true, cell: (app) => <code>{app.definition.command?.join(" ") ?? "of the request"}</code> },
  { key: "updated", head: "Changed", cell: (app) => <Time at={app.updated} /> },
  { key: "acts", head: "Actions", cell: (app) => <Switch target={{ kind: "app", id: idOf(app) }} enabled={app.enabled} onDone={reload} /> },
];

export function Apps(): JSX.Element {
  return (
    <>
      <ListHead kind="app" title="Applications" lead="What requests name with appId and appVersion; its definition gives their defaults." />
      <Paged
        label="Applications"
        load={async (cursor, signal) => {
          const { apps, nextCursor } = await call("app_list", { query: { cursor, limit: PAGE }, signal });
          return { rows: apps, next: nextCursor };
        }}
        columns={columns}
        idOf={(app) => idOf(app).join(" ")}
        empty={
          <Empty title="There is no application">
            <p>Jobs need none: a request may name its command itself.</p>
          </Empty>
        }
      />
    </>
  );
}

function parse(text: string): AppPut {
  try {
    return JSON.parse(text) as AppPut;
  } catch (error) {
    throw new Fault(-1, "The definition is not JSON", { detail: error instanceof Error ? error.message : "" });
  }
}

function Form({ app, onDone }: { app: App | null; onDone: () => void }): JSX.Element {
  const [id, setId] = useState(app?.id ?? "");
  const [version, setVersion] = useState(app?.version ?? "");
  return (
    <Editor
      kind="app"
      id={[id, version]}
      version={app?.revision}
      body={app ? JSON.stringify(app.definition, null, 2) : EXAMPLE}
      save={async (text, headers) => (await call("app_put", { path: { id, version }, body: parse(text), headers })).revision}
      onDone={() => (app ? onDone() : go(["apps", id, version]))}
      fields={(text, onText) => (
        <>
          {!app && <TextField id="id" label="Id; letters, digits, “.”, “_” and “-”" value={id} onValue={setId} />}
          {!app && <TextField id="version" label="Version" value={version} onValue={setVersion} />}
          <div class="field whole">
            <label for="definition">Definition, in JSON: what a request has if it does not say otherwise</label>
            <textarea
              id="definition"
              class="text"
              rows={Math.min(24, text.split("\n").length + 1)}
              spellcheck={false}
              value={text}
              onInput={(event) => onText(event.currentTarget.value)}
            />
          </div>
        </>
      )}
    />
  );
}

function Existing({ id, version }: { id: string; version: string }): JSX.Element {
  const live = useLive(`${id} ${version}`, (signal) => call("app_get", { path: { id, version }, signal }));
  const target = { kind: "app", id: [id, version] } as const;
  return (
    <Loaded live={live}>
      {(app) => (
        <>
          <div class="bar">
            <h1>Application {idOf(app).join(" ")}</h1>
            <State of={app.enabled ? "enabled" : "disabled"} />
            <div class="acts">
              <Switch target={target} enabled={app.enabled} onDone={live.reload} />
              <Delete target={target} version={app.revision} />
            </div>
          </div>
          <Details
            of={[
              ["Created", <Time at={app.created} />],
              ["Changed", <Time at={app.updated} />],
              ["Revision", app.revision],
              ["Jobs", <a href={href(["jobs"], { filter: `appId = '${app.id}' AND appVersion = '${app.version}'` })}>its jobs</a>],
            ]}
          />
          {may("app_put") ? (
            <Form app={app} onDone={live.reload} />
          ) : (
            <pre class="text" tabIndex={0}>
              {JSON.stringify(app.definition, null, 2)}
            </pre>
          )}
        </>
      )}
    </Loaded>
  );
}

/** id: "ID/VERSION", as in the address. */
export function AppScreen({ id: place }: { id: string }): JSX.Element {
  const [id = "", version = ""] = place.split("/");
  return (
    <>
      <Trail kind="app" title="Applications" />
      {place === NEW && may("app_put") ? (
        <>
          <h1>New application</h1>
          <Form app={null} onDone={() => undefined} />
        </>
      ) : (
        <Existing id={id} version={version} />
      )}
    </>
  );
}
