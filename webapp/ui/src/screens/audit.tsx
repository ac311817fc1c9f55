// SPDX-License-Identifier: MIT
// Who did what to what, when and from where, and what was refused. For administrators.
import type { JSX } from "preact";
import { call } from "../api/client";
import { routes, type AuditList } from "../generated/contract";
import { useLive } from "../live";
import { adjust, place } from "../route";
import { Empty, Loaded } from "../view/notice";
import { usePages } from "../view/pages";
import { State, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";

const PAGE = 50;
const OUTCOMES = ["", "done", "refused", "failed"];

/** What changes something, by the names of the contract. */
const OPERATIONS = Object.entries(routes).flatMap(([name, route]) => (route.method === "GET" ? [] : [name]));

type Row = AuditList["audit"][number];

const columns: readonly Column<Row>[] = [
  { key: "at", head: "When", cell: (row) => <Time at={row.at} /> },
  { key: "actor", head: "Who", cell: (row) => row.actor ?? "–" },
  { key: "action", head: "What", cell: (row) => words(row.action) },
  { key: "outcome", head: "Outcome", cell: (row) => <State of={row.outcome} /> },
  {
    key: "subject",
    head: "To what",
    wide: true,
    cell: (row) => (
      <>
        <code>
          {row.method} {row.subject}
        </code>
        {row.detail && <div class="muted">{row.detail}</div>}
      </>
    ),
  },
  { key: "status", head: "Error", cell: (row) => (row.outcome === "done" ? "" : [row.status, row.code].filter(Boolean).join(" ") || "–") },
  { key: "address", head: "From", cell: (row) => row.address ?? "–" },
  { key: "request", head: "Request", cell: (row) => (row.requestId ? <code title={row.requestId}>{row.requestId.slice(-12)}</code> : "–") },
];

interface Search {
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly outcome: string;
}

function Field({ name, label, value, known }: { name: string; label: string; value: string; known?: readonly string[] }): JSX.Element {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        type="search"
        value={value}
        list={known && `${name}-known`}
        onChange={(event) => adjust({ [name]: event.currentTarget.value.trim() || undefined })}
      />
      {known && (
        <datalist id={`${name}-known`}>
          {known.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </div>
  );
}

function Rows({ search }: { search: Search }): JSX.Element {
  const pages = usePages();
  const live = useLive(JSON.stringify([search, pages.cursor]), (signal) =>
    call("audit_list", { query: { ...search, cursor: pages.cursor, limit: PAGE }, signal }),
  );
  return (
    <Loaded live={live}>
      {({ audit, nextCursor }) => (
        <>
          <Table
            label="Audit log"
            columns={columns}
            rows={audit}
            idOf={(row) => row.id}
            empty={
              <Empty title="Nothing of this kind was done or refused">
                <p>Empty the fields above to see all.</p>
              </Empty>
            }
          />
          {(nextCursor || pages.cursor) && pages.control(nextCursor)}
        </>
      )}
    </Loaded>
  );
}

export function Audit(): JSX.Element {
  const { query } = place.value;
  const search: Search = {
    actor: query.get("actor") ?? "",
    action: query.get("action") ?? "",
    subject: query.get("subject") ?? "",
    outcome: query.get("outcome") ?? "",
  };
  return (
    <>
      <h1>Audit</h1>
      <p class="lead">Who did what, and what was refused. Rows are only ever added.</p>
      <div class="fields">
        <Field name="actor" label="Who" value={search.actor} />
        <Field name="action" label="Operation, as recovery_release" value={search.action} known={OPERATIONS} />
        <Field name="subject" label="To what (the path)" value={search.subject} />
      </div>
      <div class="tabs" role="group" aria-label="Outcome">
        {OUTCOMES.map((one) => (
          <button
            key={one}
            type="button"
            aria-pressed={one === search.outcome}
            onClick={() => adjust({ outcome: one || undefined })}
          >
            {one ? one[0]?.toUpperCase() + one.slice(1) : "All"}
          </button>
        ))}
      </div>
      <Rows key={JSON.stringify(search)} search={search} />
    </>
  );
}
