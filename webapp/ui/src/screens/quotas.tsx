// SPDX-License-Identifier: MIT
// Quotas: how many jobs of a user, or of the whole tenant, may be active at once.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client";
import { may } from "../api/session";
import type { Quota } from "../generated/contract";
import { useLive } from "../live";
import { go, href } from "../route";
import { Details } from "../view/details";
import { NumberField, TextField } from "../view/fields";
import { Empty, Loaded } from "../view/notice";
import { PAGE, Paged } from "../view/paged";
import type { Column } from "../view/table";
import { Time } from "../view/time";
import { Delete, Editor, ListHead, NEW, Trail } from "./resource";

const TENANT = "*";

const whose = (owner: string): string => (owner === TENANT ? "the whole tenant" : owner);

const columns = (): readonly Column<Quota>[] => [
  { key: "owner", head: "Of", wide: true, cell: (quota) => <a href={href(["quotas", quota.owner])}>{whose(quota.owner)}</a> },
  { key: "most", head: "Active jobs at most", number: true, cell: (quota) => quota.maxActive.toLocaleString("en") },
  { key: "created", head: "Created", cell: (quota) => <Time at={quota.created} /> },
  { key: "updated", head: "Changed", cell: (quota) => <Time at={quota.updated} /> },
];

export function Quotas(): JSX.Element {
  return (
    <>
      <ListHead
        kind="quota"
        title="Quotas"
        lead="How many jobs may be active, that is owned by a worker, at once. Systems have limits of their own."
      />
      <Paged
        label="Quotas"
        load={async (cursor, signal) => {
          const { quotas, nextCursor } = await call("quota_list", { query: { cursor, limit: PAGE }, signal });
          return { rows: quotas, next: nextCursor };
        }}
        columns={columns}
        idOf={(quota) => quota.owner}
        empty={
          <Empty title="There is no quota">
            <p>Every user may have as many active jobs as there are slots.</p>
          </Empty>
        }
      />
    </>
  );
}

function Form({ quota, onDone }: { quota: Quota | null; onDone: () => void }): JSX.Element {
  const [owner, setOwner] = useState(quota?.owner ?? "");
  return (
    <Editor
      kind="quota"
      id={[owner]}
      version={quota?.version}
      body={quota?.maxActive ?? null}
      ready={(most) => most !== null}
      save={async (most, headers) => (await call("quota_put", { path: { owner }, body: { maxActive: most ?? 0 }, headers })).version}
      onDone={() => (quota ? onDone() : go(["quotas", owner]))}
      fields={(most, onMost) => (
        <>
          {!quota && <TextField id="owner" label="User, or * for the whole tenant" value={owner} onValue={setOwner} />}
          <NumberField id="most" label="Active jobs at most" value={most} onValue={onMost} />
        </>
      )}
    />
  );
}

function Existing({ owner }: { owner: string }): JSX.Element {
  const live = useLive(owner, (signal) => call("quota_get", { path: { owner }, signal }));
  const jobs = href(["jobs"], { filter: `owner = '${owner.replaceAll("'", "''")}'` });
  return (
    <Loaded live={live}>
      {(quota) => (
        <>
          <div class="bar">
            <h1>Quota of {whose(quota.owner)}</h1>
            <div class="acts">
              <Delete target={{ kind: "quota", id: [quota.owner] }} version={quota.version} />
            </div>
          </div>
          <Details
            of={[
              ["Active now", `${(quota.active ?? 0).toLocaleString("en")} of ${quota.maxActive.toLocaleString("en")}`],
              ["Created", <Time at={quota.created} />],
              ["Changed", <Time at={quota.updated} />],
              ["Jobs", quota.owner !== TENANT && <a href={jobs}>its jobs</a>],
            ]}
          />
          {may("quota_put") && <Form quota={quota} onDone={live.reload} />}
        </>
      )}
    </Loaded>
  );
}

export function QuotaScreen({ id }: { id: string }): JSX.Element {
  return (
    <>
      <Trail kind="quota" title="Quotas" />
      {id === NEW && may("quota_put") ? (
        <>
          <h1>New quota</h1>
          <Form quota={null} onDone={() => undefined} />
        </>
      ) : (
        <Existing owner={id} />
      )}
    </>
  );
}
