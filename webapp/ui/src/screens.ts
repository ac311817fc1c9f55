// SPDX-License-Identifier: MIT
// The one table of screens: navigation, keys, and the route that decides who sees them.
import type { FunctionComponent } from "preact";
import type { Operation } from "./api/client";
import { Apps, AppScreen } from "./screens/apps";
import { Audit } from "./screens/audit";
import { DeadMessages } from "./screens/dead";
import { DeadMessageScreen } from "./screens/dead_message";
import { Deliveries, DeliveryScreen } from "./screens/deliveries";
import { Events } from "./screens/events";
import { Jobs } from "./screens/jobs";
import { JobScreen } from "./screens/job";
import { Overview } from "./screens/overview";
import { QueueScreen } from "./screens/queue_edit";
import { Queues } from "./screens/queues";
import { Quotas, QuotaScreen } from "./screens/quotas";
import { Recovery } from "./screens/recovery";
import { RecoveryGroup } from "./screens/recovery_group";
import { Systems, SystemScreen } from "./screens/systems";
import { Webhooks, WebhookScreen } from "./screens/webhooks";
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
  { path: "apps", title: "Applications", key: "p", needs: "app_list", list: Apps, one: AppScreen },
  { path: "systems", title: "Systems", key: "s", needs: "system_list", list: Systems, one: SystemScreen },
  { path: "quotas", title: "Quotas", key: "u", needs: "quota_list", list: Quotas, one: QuotaScreen },
  { path: "webhooks", title: "Webhooks", key: "h", needs: "subscription_list", list: Webhooks, one: WebhookScreen },
  { path: "deliveries", title: "Deliveries", key: "v", needs: "delivery_list", list: Deliveries, one: DeliveryScreen },
  { path: "events", title: "Events", key: "e", needs: "events", list: Events },
  { path: "audit", title: "Audit", key: "a", needs: "audit_list", list: Audit },
];
