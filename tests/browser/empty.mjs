// SPDX-License-Identifier: MIT
// Screens without data, and screens whose service fails: both say what to do.
import { check, close, faultsOf, given, open, run, shoot, visit } from "./page.mjs";

const EMPTY = {
  overview: ["/overview", "none"],
  jobs: ["/jobs", "No matching jobs"],
  recovery: ["/recovery", "No job is blocked"],
  queues: ["/queues", "takes what no other takes"],
  dead: ["/dead", "Every message was delivered"],
  applications: ["/apps", "There is no application"],
  systems: ["/systems", "There is no system"],
  quotas: ["/quotas", "There is no quota"],
  webhooks: ["/webhooks", "There is no webhook"],
  deliveries: ["/deliveries", "No matching deliveries"],
  workers: ["/workers", "No worker serves this tenant"],
  events: ["/events", "Nothing of this kind has happened lately"],
  audit: ["/audit?action=none", "Nothing of this kind was done"],
};
const DATABASE_AWAY = {
  status: 503,
  contentType: "application/problem+json",
  body: JSON.stringify({
    type: "about:blank", title: "The database cannot be reached", status: 503, code: "SLUICE-1050",
    detail: "cannot connect to the database", requestId: "01900000-0000-7000-8000-000000000001" }),
};

async function look(page, name, dark) {
  await shoot(page, `${name}-${dark ? "dark" : "light"}`);
  if (name.endsWith("-failing") && name !== "jobs-failing") return; // the notice is the same everywhere
  const found = await faultsOf(page);
  check(found.length === 0, `${name}: ${found.join("\n")}`);
}

async function signInFails(browser, dark) {
  const page = await (await browser.newContext({ baseURL: given.url, colorScheme: dark ? "dark" : "light" })).newPage();
  await page.goto("/");
  await page.getByLabel("Token").fill("no.good.token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The token was refused").waitFor();
  await look(page, "sign-in-failing", dark);
  await page.context().close();
}

await run(async (browser) => {
  for (const dark of [false, true]) {
    await signInFails(browser, dark);
    const page = await open(browser, { dark });
    for (const [name, [place, text]] of Object.entries(EMPTY)) {
      await visit(page, place, text);
      await look(page, `${name}-empty`, dark);
    }
    await visit(page, "/jobs/00000000-0000-7000-8000-000000000000", "Not found");
    await look(page, "job-missing", dark);
    await page.route("**/v1/**", (route) => route.fulfill(DATABASE_AWAY));
    for (const [name, [place]] of Object.entries(EMPTY)) {
      await visit(page, place, "Administrators: /readyz");
      await look(page, `${name}-failing`, dark);
    }
    await page.unroute("**/v1/**");
    await page.route("**/v1/**", (route) => route.abort());
    await visit(page, "/jobs", "No connection to the service");
    await look(page, "jobs-unreachable", dark);
    await page.unroute("**/v1/**");
    await page.getByText("No matching jobs").waitFor(); // it asks again by itself
    await close(page);
  }
});
