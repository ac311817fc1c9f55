// SPDX-License-Identifier: MIT
// What a group of blocked jobs waits for, in words.
import type { Recovery } from "../generated/contract";

type Params = Record<string, unknown>;

const TEXTS: Readonly<Record<string, (params: Params) => string>> = {
  app_enabled: ({ app, version }) => `application ${app} ${version} to be enabled`,
  system_enabled: ({ system }) => `system ${system} to be available`,
  quota: ({ owner, scope, system }) =>
    `room in the quota of ${scope === "tenant" ? "the tenant" : (owner ?? system ?? "it")}`,
  tcp_connect: ({ host, port }) => `${host}:${port} to take a connection`,
  http_auth: ({ url }) => `${url} to let us in`,
  queue_ready: ({ queue }) => `queue ${queue} to be there again`,
  database: () => "the database to answer",
};

export function waitsFor(group: Recovery): string {
  return TEXTS[group.tester]?.(group.params) ?? `${group.tester} ${JSON.stringify(group.params)}`;
}

export function jobs(count: number): string {
  return `${count.toLocaleString("en")} job${count === 1 ? "" : "s"}`;
}
