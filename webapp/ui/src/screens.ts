// SPDX-License-Identifier: MIT
// The one table of screens: navigation, keys, and the route that decides who sees them.
import type { FunctionComponent } from "preact";
import type { Operation } from "./api/client";
import { Audit } from "./screens/audit";
import { DeadMessages } from "./screens/dead";
import { DeadMessageScreen } from "./screens/dead_message";
import { Events } from "./screens/events";
import { Jobs } from "./screens/jobs";
import { JobScreen } from "./screens/job";
import { Overview } from "./screens/overview";
import { QueueScreen } from "./screens/queue_edit";
import { Queues } from "./screens/queues";
import { Recovery } from "./screens/recovery";
import { RecoveryGroup } from "./screens/recovery_group";
import { Workers } from "./screens/workers";

export interface ScreenProps {
  readonly id: string;
}

export interface Screen {
  readonly path: string;
  readonly title: string;
  /** After "g". */
  readonly key: string;
  readonly needs: Operation;
  readonly list: FunctionComponent;
  /** One of the list, "#/path/id". */
  readonly one?: FunctionComponent<ScreenProps>;
}

export const screens: readonly Screen[] = [
  { path: "overview", title: "Overview", key: "o", needs: "overview", list: Overview },
  { path: "jobs", title: "Jobs", key: "j", needs: "job_list", list: Jobs, one: JobScreen },
  { path: "recovery", title: "Recovery", key: "r", needs: "recovery_list", list: Recovery, one: RecoveryGroup },
  { path: "queues", title: "Queues", key: "q", needs: "queue_list", list: Queues, one: QueueScreen },
  { path: "dead", title: "Dead messages", key: "d", needs: "dead_list", list: DeadMessages, one: DeadMessageScreen },
  { path: "workers", title: "Workers", key: "w", needs: "worker_list", list: Workers },
  { path: "events", title: "Events", key: "e", needs: "events", list: Events },
  { path: "audit", title: "Audit", key: "a", needs: "audit_list", list: Audit },
];
