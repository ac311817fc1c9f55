// SPDX-License-Identifier: MIT
// What each role sees: no screen and no button behind which there is a refusal.
import { check, close, given, open, run, visit } from "./page.mjs";

const { ids } = given;
const PLACES = ["/overview", "/jobs", `/jobs/${ids.running}`, `/jobs/${ids.done}`, "/recovery", `/recovery/${ids.group}`,
  "/queues", "/queues/quick", "/workers", "/events", "/apps", "/apps/blast/2", "/systems", "/systems/west", "/quotas", "/quotas/ann",
  "/deliveries", `/deliveries/${ids.delivery}`, `/jobs/${ids.held}`, `/recovery/${ids.disabled}`];
const HIDDEN = ["/dead", `/dead/${ids.message}`, "/webhooks", "/webhooks/portal"];

// Buttons that call nothing, or only what everybody may call.
const HARMLESS = new Set(["Live", "Paused", "Stale", "Offline", "Dark", "Light", "?", "Sign out", "Search", "All", "Waiting", "Running",
  "Blocked", "Finished", "Failed", "Cancelled", "Newer", "Older", "Back", "Next", "Columns", "Both", "stdout", "stderr", "Save stdout",
  "Save stderr", "Save", "Previous", "Next match",
  "Try again", "Due", "Held", "Delivered", "Dead", "Dropped"]);
// The latter searches his own jobs.
const BEYOND = { viewer: [], user: ["Test the filters", "Cancel all found"] };

async function oddOnes(page, role) {
  const names = await page.locator("button:visible, a.button:visible").allInnerTexts();
  const known = names.map((name) => name.trim().replace(/^Show all \d+ steps$/, "All"));
  return known.filter((name) => name && !HARMLESS.has(name) && !BEYOND[role].includes(name));
}

async function look(browser, role) {
  const page = await open(browser, { role });
  const refused = [];
  page.on("response", (answer) => {
    if (answer.status() === 401 || answer.status() === 403) refused.push(`${answer.status()} ${answer.url()}`);
  });
  const navigation = await page.getByRole("navigation").innerText();
  check(!/Dead messages|Audit|Webhooks/.test(navigation), `${role} sees ${navigation}`);
  for (const place of PLACES) {
    await visit(page, place);
    const odd = await oddOnes(page, role);
    check(odd.length === 0, `${role} is offered at ${place}: ${odd.join(", ")}`);
    for (const box of await page.locator("main tbody input[type=checkbox]").all()) await box.check();
    const acts = await oddOnes(page, role);
    check(acts.length === 0, `${role} may select at ${place} and is offered: ${acts.join(", ")}`);
  }
  for (const place of HIDDEN) await visit(page, place, "your role does not show it");
  check(refused.length === 0, `${role} was refused: ${refused.join(", ")}`);
  await close(page);
}

await run(async (browser) => {
  for (const role of ["viewer", "user"]) await look(browser, role);
  const page = await open(browser, { role: "operator" });
  for (const [place, name] of [[`/recovery/${ids.group}`, "Release"], [`/dead/${ids.message}`, "Replay"], ["/workers", "Drain"],
    [`/jobs/${ids.running}`, "Cancel"]]) {
    await visit(page, place);
    await page.getByRole("button", { name, exact: true }).first().waitFor();
  }
  await visit(page, `/deliveries/${ids.delivery}`);
  await page.getByRole("button", { name: "Send again" }).waitFor();
  for (const place of ["/apps/blast/2", "/systems/west", "/quotas/ann", "/webhooks/portal"]) {
    await visit(page, place);
    const odd = await oddOnes(page, "viewer");
    check(odd.length === 0, `an operator is offered at ${place}: ${odd.join(", ")}`);
  }
  await visit(page, "/queues/quick");
  check((await page.getByRole("button", { name: "Save" }).count()) === 0, "an operator cannot save a queue");
  await close(page);
});
