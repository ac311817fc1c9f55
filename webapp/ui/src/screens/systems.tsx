// SPDX-License-Identifier: MIT
// Execution systems: what systemId of a request names, and how many jobs each may run at once.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import { may } from "../api/session";
import type { System, SystemPut } from "../generated/contract";
import { useLive } from "../live";
import { go, href } from "../route";
import { Details } from "../view/details";
import { NumberField, TextField } from "../view/fields";
import { Empty, Loaded } from "../view/notice";
import { PAGE, Paged } from "../view/paged";
import { State } from "../view/state";
import type { Column } from "../view/table";
import { Time } from "../view/time";
import { Delete, Editor, ListHead, NEW, Switch, Trail } from "./resource";

const limit = (value: number | null): string => value?.toLocaleString("en") ?? "no limit";

const columns = (reload: () => void): readonly Column<System>[] => [
  { key: "id", head: "System", cell: (system) => <a href={href(["systems", system.id])}>{system.id}</a> },
  { key: "state", head: "State", cell: (system) => <State of={system.enabled ? "enabled" : "disabled"} /> },
  { key: "kind", head: "Kind", cell: (system) => system.kind },
  { key: "most", head: "Active jobs at most", number: true, cell: (system) => limit(system.maxActive) },
  { key: "each", head: "Of each user", number: true, cell: (system) => limit(system.maxActivePerOwner) },
  { key: "description", head: "Description", wide: true, cell: (system) => system.description || "–" },
  {
    key: "acts",
    head: "Actions",
    cell: (system) => <Switch target={{ kind: "system", id: [system.id] }} enabled={system.enabled} onDone={reload} />,
  },
];

export function Systems(): JSX.Element {
  return (
    <>
      <ListHead kind="system" title="Systems" lead="Where jobs run that name one with systemId, and how many at once." />
      <Paged
        label="Systems"
        load={async (cursor, signal) => {
          const { systems, nextCursor } = await call("system_list", { query: { cursor, limit: PAGE }, signal });
          return { rows: systems, next: nextCursor };
        }}
        columns={columns}
        idOf={(system) => system.id}
        empty={
          <Empty title="There is no system">
            <p>Jobs need none: queues decide which worker takes them.</p>
          </Empty>
        }
      />
    </>
  );
}

function bodyOf(system: System | null): SystemPut {
  return {
    kind: system?.kind ?? "local",
    maxActive: system?.maxActive ?? null,
    maxActivePerOwner: system?.maxActivePerOwner ?? null,
    description: system?.description ?? "",
  };
}

function Form({ system, onDone }: { system: System | null; onDone: () => void }): JSX.Element {
  const [id, setId] = useState(system?.id ?? "");
  return (
    <Editor
      kind="system"
      id={[id]}
      version={system?.version}
      body={bodyOf(system)}
      save={async (body, headers) => (await call("system_put", { path: { id }, body, headers })).version}
      onDone={() => (system ? onDone() : go(["systems", id]))}
      fields={(body, onBody) => (
        <>
          {!system && <TextField id="id" label="Id; letters, digits, “.”, “_” and “-”" value={id} onValue={setId} />}
          <NumberField
            id="most"
            label="Active jobs at most; empty: no limit"
            value={body.maxActive}
            onValue={(maxActive) => onBody({ ...body, maxActive })}
          />
          <NumberField
            id="each"
            label="Active jobs of each user at most"
            value={body.maxActivePerOwner}
            onValue={(maxActivePerOwner) => onBody({ ...body, maxActivePerOwner })}
          />
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

function Existing({ id }: { id: string }): JSX.Element {
  const live = useLive(id, (signal) => call("system_get", { path: { id }, signal }));
  const target = { kind: "system", id: [id] } as const;
  return (
    <Loaded live={live}>
      {(system) => (
        <>
          <div class="bar">
            <h1>System {system.id}</h1>
            <State of={system.enabled ? "enabled" : "disabled"} />
            <div class="acts">
              <Switch target={target} enabled={system.enabled} onDone={live.reload} />
              <Delete target={target} version={system.version} />
            </div>
          </div>
          <Details
            of={[
              ["Kind", system.kind],
              ["Active jobs at most", limit(system.maxActive)],
              ["Of each user", limit(system.maxActivePerOwner)],
              ["Description", !may("system_put") && system.description, true],
              ["Created", <Time at={system.created} />],
              ["Changed", <Time at={system.updated} />],
              ["Jobs", <a href={href(["jobs"], { filter: `systemId = '${system.id}'` })}>its jobs</a>],
            ]}
          />
          {may("system_put") && <Form system={system} onDone={live.reload} />}
        </>
      )}
    </Loaded>
  );
}

export function SystemScreen({ id }: { id: string }): JSX.Element {
  return (
    <>
      <Trail kind="system" title="Systems" />
      {id === NEW && may("system_put") ? (
        <>
          <h1>New system</h1>
          <Form system={null} onDone={() => undefined} />
        </>
      ) : (
        <Existing id={id} />
      )}
    </>
  );
}
