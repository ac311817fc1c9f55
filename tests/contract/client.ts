// SPDX-License-Identifier: MIT
// What a portal does, with types that a public generator made of the contract (generated/api.ts):
// submit a job, wait for its end, fetch its output; submit another one and cancel it.
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/api.js";

declare const process: { env: Record<string, string | undefined>; exit(status: number): never };

type Job = components["schemas"]["Job"];
type Problem = components["schemas"]["Problem"];

const client = createClient<paths>({
  baseUrl: process.env.SLUICE_URL ?? "",
  headers: { Authorization: `Bearer ${process.env.SLUICE_TOKEN ?? ""}` },
});

/** The answer, or an error that says what the problem document says. */
function given<T>(reply: { data?: T; error?: Problem; response: Response }): T {
  if (reply.error) throw new Error(`${reply.error.status} ${reply.error.code}: ${reply.error.detail}`);
  if (reply.data === undefined) throw new Error(`${reply.response.status} without a body`);
  return reply.data;
}

async function submit(name: string, command: string[]): Promise<Job> {
  return given(await client.POST("/v1/jobs", { body: { name, command, tags: ["contract"] } }));
}

async function ended(id: string): Promise<Job> {
  for (;;) {
    const job = given(await client.GET("/v1/jobs/{id}", { params: { path: { id }, query: { wait: 10 } } }));
    if (job.status === "FINISHED" || job.status === "FAILED" || job.status === "CANCELLED") return job;
  }
}

async function output(id: string, stream: "stdout" | "stderr"): Promise<string> {
  return String(given(await client.GET("/v1/jobs/{id}/output/{stream}", {
    params: { path: { id, stream } },
    parseAs: "text",
  })));
}

async function running(id: string): Promise<void> {
  while (given(await client.GET("/v1/jobs/{id}", { params: { path: { id } } })).status !== "RUNNING")
    await new Promise((done) => setTimeout(done, 50));
}

function expect(what: string, is: unknown, wanted: unknown): void {
  if (is !== wanted) throw new Error(`${what} is ${JSON.stringify(is)}, not ${JSON.stringify(wanted)}`);
  console.log(`${what}: ${JSON.stringify(is)}`);
}

const first = await submit("hello", ["sh", "-c", "echo out; echo err >&2; exit 3"]);
expect("submitted", first.status, "PENDING");
const end = await ended(first.id);
expect("ended", end.status, "FAILED");
expect("exit code", end.exitCode, 3);
expect("condition", end.condition, "COMMAND_FAILED");
expect("stdout", await output(first.id, "stdout"), "out\n");
expect("stderr", await output(first.id, "stderr"), "err\n");

const second = await submit("long", ["sleep", "300"]);
await running(second.id);
const asked = await client.POST("/v1/jobs/{id}/cancel", { params: { path: { id: second.id } } });
expect("cancel", asked.response.status, 202);
expect("cancelled", (await ended(second.id)).status, "CANCELLED");

const again = await client.POST("/v1/jobs/{id}/cancel", { params: { path: { id: second.id } } });
expect("cancel once more", again.error?.status, 409);
expect("its code", again.error?.code, "SLUICE-1031");

const list = given(await client.GET("/v1/jobs", { params: { query: { filter: "'contract' IN tags", limit: 10 } } }));
expect("listed", list.jobs.length, 2);
console.log("the client is content");
