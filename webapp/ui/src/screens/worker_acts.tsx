// SPDX-License-Identifier: MIT
import type { JSX } from "preact";
import { call, faultOf } from "../api/client";
import { mayOnAll } from "../api/session";
import type { Queue, Worker } from "../generated/contract";
import { place } from "../route";
import { ask, tell } from "../view/dialog";

/** What happens to its jobs, and who takes the others. */
function Consequence({ worker, queue }: { worker: Worker; queue: Queue }): JSX.Element {
  const others = queue.takers - 1;
  const { count, isMore } = queue.waiting;
  const waiting = `${count.toLocaleString("en")}${isMore ? "+" : ""}`;
  return (
    <>
      <p>
        It takes no further job.{" "}
        {worker.busy > 0
          ? `The ${worker.busy} that it runs ${worker.busy === 1 ? "goes" : "go"} on to the end: nothing is killed.`
          : "It runs none now."}
      </p>
      {others > 0 ? (
        <p>
          {others === 1 ? "One other worker takes" : `${others} other workers take`} jobs of queue {queue.name}.
        </p>
      ) : (
        <p>
          <strong>No other worker takes jobs of queue {queue.name}.</strong> Its waiting jobs ({waiting} now) and all that come
          wait until one does.
        </p>
      )}
    </>
  );
}

export function WorkerActs({ worker, onDone }: { worker: Worker; onDone: () => void }): JSX.Element | null {
  if (worker.state !== "live" || !mayOnAll("worker_drain")) return null;
  const path = { id: worker.id };
  const drain = async (): Promise<void> => {
    const asked = place.value;
    try {
      const queue = await call("queue_get", { path: { name: worker.queue } });
      if (place.value !== asked) return; // it would ask about another screen
      ask({
        title: `Drain worker ${worker.name}?`,
        body: <Consequence worker={worker} queue={queue} />,
        act: "Drain 1 worker",
        danger: queue.takers <= 1,
        run: async () => {
          await call("worker_drain", { path });
          onDone();
          return `Worker ${worker.name} takes no further job.`;
        },
      });
    } catch (error) {
      tell(faultOf(error).message);
    }
  };
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
      <button type="button" onClick={worker.draining ? undrain : () => void drain()}>
        {worker.draining ? "Resume" : "Drain"}
      </button>
    </div>
  );
}
