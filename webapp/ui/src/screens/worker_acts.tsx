// SPDX-License-Identifier: MIT
import type { JSX } from "preact";
import { call } from "../api/client";
import { mayOnAll } from "../api/session";
import type { Worker } from "../generated/contract";
import { ask } from "../view/dialog";

export function WorkerActs({ worker, onDone }: { worker: Worker; onDone: () => void }): JSX.Element | null {
  if (worker.state !== "live" || !mayOnAll("worker_drain")) return null;
  const path = { id: worker.id };
  const drain = (): void =>
    ask({
      title: `Drain worker ${worker.name}?`,
      body: (
        <p>
          It takes no further job and ends the {worker.busy} that it has. The others of queue {worker.queue} go on.
        </p>
      ),
      act: "Drain 1 worker",
      run: async () => {
        await call("worker_drain", { path });
        onDone();
        return `Worker ${worker.name} takes no further job.`;
      },
    });
  const undrain = (): void =>
    ask({
      title: `Let worker ${worker.name} take jobs again?`,
      body: <p>It takes jobs of queue {worker.queue} from now on.</p>,
      act: "Resume 1 worker",
      run: async () => {
        await call("worker_undrain", { path });
        onDone();
        return `Worker ${worker.name} takes jobs again.`;
      },
    });
  return (
    <div class="acts">
      <button type="button" onClick={worker.draining ? undrain : drain}>
        {worker.draining ? "Resume" : "Drain"}
      </button>
    </div>
  );
}
