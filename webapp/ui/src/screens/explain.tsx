// SPDX-License-Identifier: MIT
// A request, tried against every filter.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, Fault, faultOf } from "../api/client";
import type { Explanation, JobRequest } from "../generated/contract";
import { FaultNotice } from "../view/notice";
import { State } from "../view/state";
import { Table, type Column } from "../view/table";

const EXAMPLE = `{
  "name": "example",
  "command": ["true"],
  "memoryMB": 2000,
  "maxMinutes": 10,
  "tags": []
}`;

type Tried = Explanation["filters"][number];

function valueText(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : value === null ? "NULL" : JSON.stringify(value);
}

const columns: readonly Column<Tried>[] = [
  { key: "priority", head: "Priority", number: true, cell: (tried) => tried.priority },
  { key: "queue", head: "Queue", cell: (tried) => (tried.chosen ? <strong>{tried.queue} takes it</strong> : tried.queue) },
  { key: "verdict", head: "Verdict", cell: (tried) => <State of={tried.verdict} /> },
  { key: "filter", head: "Filter", wide: true, cell: (tried) => (tried.filter ? <code>{tried.filter}</code> : "–") },
  {
    key: "values",
    head: "Values seen",
    wide: true,
    cell: (tried) =>
      Object.entries(tried.values)
        .map(([name, value]) => `${name} = ${valueText(value)}`)
        .join(", ") || "–",
  },
];

function parse(text: string): JobRequest {
  try {
    return JSON.parse(text) as JobRequest;
  } catch (error) {
    throw new Fault(-1, "The request is not JSON", { detail: error instanceof Error ? error.message : "" });
  }
}

export function Explain(): JSX.Element {
  const [text, setText] = useState(EXAMPLE);
  const [result, setResult] = useState<Explanation | Fault | null>(null);
  const test = async (): Promise<void> => {
    try {
      setResult(await call("queue_explain", { query: { all: true }, body: parse(text) }));
    } catch (error) {
      setResult(faultOf(error));
    }
  };
  return (
    <section>
      <h2>Which queue would take this request?</h2>
      <label for="request">Job request; nothing is stored</label>
      <textarea
        id="request"
        class="text"
        rows={8}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="acts">
        <button type="button" class="main" onClick={() => void test()}>
          Test the filters
        </button>
      </div>
      {result instanceof Fault && <FaultNotice fault={result} />}
      {result && !(result instanceof Fault) && (
        <>
          <p class="why">
            {result.queue ? `Queue ${result.queue} would take it.` : "No queue would take it: the default queue is disabled."}
          </p>
          <Table label="Filters tried" columns={columns} rows={result.filters} idOf={(tried) => tried.queue} empty={null} />
        </>
      )}
    </section>
  );
}
