// SPDX-License-Identifier: MIT
// What is typed into the search box of jobs: a filter, words, or the id of a job. The box, the
// address, the list and every dialog have the text as it was typed; only the call has its meaning.
import { words } from "./view/state";

const LANGUAGE = /[=<>'()]|\b(?:AND|OR|IN)\b|\b(?:LIKE|IS|NOT|BETWEEN)\b|^visible$/;
const LOWER = /\b(?:like|is|not|between)\b/;
const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Words match a part of the name, or all of an owner, a queue, an application or a tag. */
function filterOfWords(text: string): string {
  const pattern = text.replace(/[!%_]/g, "!$&");
  const escape = pattern === text ? "" : " ESCAPE '!'";
  const equal = ["owner", "queue", "appId"].map((name) => `${name} = '${text}'`);
  return [`name LIKE '%${pattern}%'${escape}`, ...equal, `'${text}' IN tags`].join(" OR ");
}

export function isJobId(text: string): boolean {
  return ID.test(text.trim());
}

export function isWords(text: string): boolean {
  return text.trim() !== "" && !isJobId(text) && !LANGUAGE.test(text) && !LOWER.test(text);
}

/** The filter of the call. */
export function filterOf(text: string): string {
  return isWords(text) ? filterOfWords(text.trim()) : text.trim();
}

export interface Search {
  /** As it was typed. */
  readonly text: string;
  /** States, separated by commas; empty: all. */
  readonly status: string;
  readonly hidden: boolean;
}

export const STATE_GROUPS: readonly (readonly [string, string])[] = [
  ["All", ""],
  ["Waiting", "PENDING,QUEUED"],
  ["Running", "PROCESSING_INPUTS,STAGING_INPUTS,STAGING_JOB,SUBMITTING_JOB,RUNNING,ARCHIVING"],
  ["Blocked", "BLOCKED,PAUSED"],
  ["Finished", "FINISHED"],
  ["Failed", "FAILED"],
  ["Cancelled", "CANCELLED"],
];

/** What the tabs call it, or the states by their names. */
export function statusText(status: string): string {
  return STATE_GROUPS.find(([, states]) => states === status)?.[0] ?? status.split(",").map(words).join(", ");
}

/** The search as the query of a call. */
export function queryOf(search: Search): { filter: string; status: string; hidden: boolean | undefined } {
  return { filter: filterOf(search.text), status: search.status, hidden: search.hidden || undefined };
}
