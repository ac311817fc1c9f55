// SPDX-License-Identifier: MIT
// Writes src/generated/contract.ts from what the service is made of: its routes (who may do what),
// the schemas of its contract, its errors with their cures, states and conditions. A page that
// asks for a route or a member that is not there does not compile.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const read = (path) => readFileSync(join(here, "../..", path), "utf8");
const quote = (value) => JSON.stringify(value);

const ROUTE = /^ROUTE\(\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)/gm;
const ERROR = /^ERR\(\w+,\s*(\d+),\s*\d+,\s*\w+,\s*"[^"]*",\s*"([^"]*)"\)/gm;
const STATE = /^JOB_STATE\(\w+,\s*"(\w+)",\s*(true|false),/gm;
const CONDITION = /^JOB_CONDITION\((\w+),\s*\d+,\s*"([^"]*)"\)/gm;

const contract = JSON.parse(read("webapp/openapi.json"));

// ---- schemas as types

function objectType(schema, indent) {
  if (!schema.properties)
    return `Record<string, ${schema.additionalProperties ? typeOf(schema.additionalProperties, indent) : "unknown"}>`;
  const inner = `${indent}  `;
  // What is sent is strict and may leave members out; what is answered is whole.
  const required = schema.required ?? (schema.additionalProperties === false ? [] : null);
  const members = Object.entries(schema.properties).map(([name, member]) => {
    const optional = required && !required.includes(name) ? "?" : "";
    return `${inner}${name}${optional}: ${typeOf(member, inner)};\n`;
  });
  return `{\n${members.join("")}${indent}}`;
}

function typeOf(schema, indent) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.oneOf && !schema.type) return schema.oneOf.map((one) => typeOf(one, indent)).join(" | ");
  if (schema.allOf)
    return [...schema.allOf.map((one) => typeOf(one, indent)), ...(schema.properties ? [objectType(schema, indent)] : [])].join(" & ");
  if (schema.enum) return schema.enum.map(quote).join(" | ");
  if ("const" in schema) return quote(schema.const);
  if (Array.isArray(schema.type))
    return schema.type.map((type) => typeOf({ ...schema, type }, indent)).join(" | ");
  switch (schema.type) {
    case "integer":
    case "number":
      return "number";
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "array":
      return `readonly (${typeOf(schema.items ?? {}, indent)})[]`;
    case "object":
      return objectType(schema, indent);
    default:
      return "unknown";
  }
}

const types = Object.entries(contract.components.schemas).map(
  ([name, schema]) => `export type ${name} = ${typeOf(schema, "")};\n`,
);

// ---- routes

const routes = [...read("webapp/routes.def").matchAll(ROUTE)]
  .map(([, name, method, least, others, body, answer, path, query]) =>
    ({ name, method, least: least.toLowerCase(), others: others.toLowerCase(), body, answer, path, query }))
  .filter((route) => route.answer !== "Page");
const known = (name) => (name in contract.components.schemas ? name : name === "NONE" ? "never" : "unknown");
const words = (list) => (list.length ? list.map(quote).join(" | ") : "never");

const operations = routes.map((route) => {
  const parameters = [...route.path.matchAll(/\{(\w+)/g)].map((match) => match[1]);
  return `  ${route.name}: { path: ${words(parameters)}; query: ${words(route.query.split(" ").filter(Boolean))}; ` +
    `body: ${known(route.body)}; answer: ${known(route.answer)} };\n`;
});
const rows = routes.map((route) =>
  `  ${route.name}: { method: ${quote(route.method)}, path: ${quote(route.path.replace("...", ""))}, ` +
  `least: ${quote(route.least)}, others: ${quote(route.others)} },\n`);

// ---- texts

const errors = [...read("common/base/err.def").matchAll(ERROR)].map(([, number, cure]) =>
  `  ${quote(`SLUICE-${number}`)}: ${quote(cure)},\n`);
const states = [...read("common/model/job_state.def").matchAll(STATE)];
const conditions = [...read("common/model/condition.def").matchAll(CONDITION)].map(([, name, meaning]) =>
  `  ${name}: ${quote(meaning)},\n`);
if (!routes.length || !errors.length || !states.length || !conditions.length)
  throw new Error("a table cannot be read any more");

mkdirSync(join(here, "src/generated"), { recursive: true });
writeFileSync(join(here, "src/generated/contract.ts"), `// SPDX-License-Identifier: MIT
// Made by contract.mjs.

${types.join("\n")}
export interface Operations {
${operations.join("")}}

export const routes = {
${rows.join("")}} as const;

export const cures: Readonly<Record<string, string>> = {
${errors.join("")}};

export const states: readonly Status[] = [${states.map((state) => quote(state[1])).join(", ")}];
export const ended: readonly Status[] = [${states.filter((state) => state[2] === "true").map((state) => quote(state[1])).join(", ")}];

export const conditions: Readonly<Record<string, string>> = {
${conditions.join("")}};
`);
