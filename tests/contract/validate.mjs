// SPDX-License-Identifier: MIT
// validate.mjs FILE: two public judges of a contract. The one compares it with the schemas that the
// OpenAPI Initiative publishes, the other looks at what no schema can say: parameters that are in
// the path, references that lead somewhere, examples that fit.
import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";

const file = process.argv[2];
const source = readFileSync(file, "utf8");
const faults = [];

const validator = new Validator();
const verdict = await validator.validate(JSON.parse(source));
if (!verdict.valid) faults.push(...[verdict.errors].flat().map((error) => JSON.stringify(error)));

const config = await createConfig({
  extends: ["recommended"],
  // Problem405 belongs to paths, not to an operation; test_web_contract looks at all others.
  rules: { "no-unused-components": "off", "no-invalid-schema-examples": "error" },
});
for (const problem of await lintFromString({ source, absoluteRef: file, config }))
  faults.push(`${problem.severity} ${problem.ruleId}: ${problem.message} at ${problem.location[0]?.pointer}`);

console.log(faults.join("\n"));
console.log(`OpenAPI ${validator.version}, ${source.length} bytes, ${faults.length} faults`);
process.exit(faults.length ? 1 : 0);
