// SPDX-License-Identifier: MIT
// Blocked jobs in groups, by what they wait for.
import type { JSX } from "preact";
import { callAll } from "../api/client";
import type { Recovery as Group } from "../generated/contract";
import { useLive } from "../live";
import { href } from "../route";
import { Empty, Loaded } from "../view/notice";
import { Condition, words } from "../view/state";
import { Table, type Column } from "../view/table";
import { Time } from "../view/time";
import { RecoveryActs } from "./recovery_acts";
import { waitsFor } from "./recovery_text";

export function resultOf(group: Group): string {
  if (group.asked) return `${group.askedBy ?? "somebody"} asked to ${group.asked} them`;
  if (group.ramp > 0) return `being released, ${group.ramp} at a time`;
  if (!group.lastResult) return "not checked yet";
  return `${words(group.lastResult)}${group.lastDetail ? `: ${group.lastDetail}` : ""}`;
}

function columnsFor(onDone: () => void): readonly Column<Group>[] {
  return [
    {
      key: "for",
      head: "Waits for",
      wide: true,
      cell: (group) => (
        <>
          <a href={href(["recovery", group.id])}>{waitsFor(group)}</a>
          <div class="muted">
            <Condition of={group.condition} />
          </div>
        </>
      ),
    },
    { key: "blocked", head: "Jobs", number: true, cell: (group) => group.blocked.toLocaleString("en") },
    { key: "since", head: "Since", cell: (group) => <Time at={group.since} /> },
    { key: "next", head: "Next check", cell: (group) => <Time at={group.nextCheck} /> },
    { key: "result", head: "Last result", wide: true, cell: resultOf },
    { key: "acts", head: "Actions", cell: (group) => <RecoveryActs group={group} onDone={onDone} /> },
  ];
}

export function Recovery(): JSX.Element {
  const live = useLive("recovery", (signal) => callAll("recovery_list", { signal }, (page) => page.recovery));
  const columns = columnsFor(live.reload);
  return (
    <>
      <h1>Recovery</h1>
      <p class="lead">Jobs that wait for something other than a free slot. They are released when a check finds it available again.</p>
      <Loaded live={live}>
        {(groups) => (
          <Table
            label="Groups of blocked jobs"
            columns={columns}
            rows={[...groups].sort((a, b) => b.blocked - a.blocked)}
            idOf={(group) => group.id}
            empty={
              <Empty title="No job is blocked">
                <p>Nothing needs to be done.</p>
              </Empty>
            }
          />
        )}
      </Loaded>
    </>
  );
}
