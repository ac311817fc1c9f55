// SPDX-License-Identifier: MIT
// Calls of the REST service by the names of its routes; each answer and body has the type that the
// contract gives it. A refusal is thrown as a Fault.
import { cures, routes, type Operations, type Problem } from "../generated/contract";
import { dropToken, token } from "./token";

export type Operation = keyof Operations;
type Query<N extends Operation> = Partial<Record<Operations[N]["query"], string | number | boolean | undefined>>;
type PathOf<N extends Operation> = [Operations[N]["path"]] extends [never]
  ? { path?: undefined }
  : { path: Record<Operations[N]["path"], string> };

export type CallOptions<N extends Operation> = PathOf<N> & {
  query?: Query<N>;
  body?: Operations[N]["body"] | undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
};

/** What went wrong, with the service's code and the cure that belongs to it. */
export class Fault extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly problem: Partial<Problem>,
  ) {
    super(problem.detail ?? title);
  }
  get code(): string | undefined {
    return this.problem.code;
  }
  get cure(): string | undefined {
    if (this.status === 0)
      return (
        "The service cannot be reached from this browser. Check that sluice-web runs and that the network works; " +
        "the page asks again by itself."
      );
    return this.code ? cures[this.code] : undefined;
  }
}

export function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error;
  if (error instanceof TypeError) return new Fault(0, "No connection to the service", {});
  return new Fault(-1, "The page failed", { detail: error instanceof Error ? error.message : String(error) });
}

async function faultOfAnswer(answer: Response): Promise<Fault> {
  const text = await answer.text();
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    return new Fault(answer.status, problem.title ?? `Status ${answer.status}`, problem);
  } catch {
    return new Fault(answer.status, `Status ${answer.status}`, { detail: text.slice(0, 400) });
  }
}

function addressOf<N extends Operation>(name: N, options: CallOptions<N>): string {
  const given: Partial<Record<string, string>> = options.path ?? {};
  const path = routes[name].path.replace(/\{(\w+)\}/g, (_, part: string) =>
    (given[part] ?? "").split("/").map(encodeURIComponent).join("/"),
  );
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(options.query ?? {}))
    if (value !== undefined && value !== "") query.set(key, String(value));
  return query.size > 0 ? `${path}?${query}` : path;
}

/** The answer to a path of the service, with our token. */
export async function fetchPath(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const sent = token.value;
  if (sent) headers.set("Authorization", `Bearer ${sent}`);
  const answer = await fetch(path, { ...init, headers });
  if (answer.ok) return answer;
  const fault = await faultOfAnswer(answer);
  if (answer.status === 401 && sent === token.value) dropToken(fault.message);
  throw fault;
}

/** The answer as it comes; for streams and files. */
export function fetchRoute<N extends Operation>(name: N, options: CallOptions<N>): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  return fetchPath(addressOf(name, options), {
    method: routes[name].method,
    headers,
    body: options.body === undefined ? null : JSON.stringify(options.body),
    signal: options.signal ?? null,
  });
}

/** A list that comes in pages. */
type Paged = { [N in Operation]: Operations[N]["answer"] extends { nextCursor: string | null } ? N : never }[Operation];

/** All pages, one after the other; pick: the items of one. */
export async function callAll<N extends Paged, Item>(
  name: N,
  options: CallOptions<N>,
  pick: (page: Operations[N]["answer"]) => readonly Item[],
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | null = null;
  do {
    const query: object = cursor === null ? { ...options.query } : { ...options.query, cursor };
    const page: Operations[N]["answer"] = await call(name, { ...options, query } as CallOptions<N>);
    items.push(...pick(page));
    cursor = (page as { nextCursor: string | null }).nextCursor;
  } while (cursor !== null);
  return items;
}

export async function call<N extends Operation>(
  name: N,
  options: CallOptions<N>,
): Promise<Operations[N]["answer"]> {
  const answer = await fetchRoute(name, options);
  return (answer.status === 204 ? undefined : await answer.json()) as Operations[N]["answer"];
}
