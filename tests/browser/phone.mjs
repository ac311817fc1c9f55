// SPDX-License-Identifier: MIT
// 390 pixels wide: whatever can be pressed lies within the window, the tab of the screen is seen, and
// so is who is signed in.
import { check, close, faultsOf, given, open, run, shoot, visit } from "./page.mjs";

const WIDTH = 390;
const { ids } = given;
const PLACES = ["/overview", "/jobs", `/jobs/${ids.running}`, "/recovery", `/recovery/${ids.group}`, `/recovery/${ids.disabled}`, "/queues",
  "/queues/quick", "/dead", `/dead/${ids.message}`, "/workers", "/apps", "/apps/blast/2", "/systems", "/quotas", "/webhooks",
  "/webhooks/portal", "/deliveries", `/deliveries/${ids.delivery}`, "/events", "/audit"];

/** What is pressed and lies outside, also if something could be scrolled to it. */
function outside(page) {
  return page.evaluate((width) => {
    const things = document.querySelectorAll("main :is(button, a, input, select, textarea, summary), header button");
    return [...things].flatMap((thing) => {
      const { left, right, width: own } = thing.getBoundingClientRect();
      const isFolded = thing.closest("details:not([open]) > :not(summary)");
      return own > 0 && !isFolded && (left < 0 || right > width) ? [`${thing.textContent || thing.id} ${left}-${right}`] : [];
    });
  }, WIDTH);
}

function isTabInView(page) {
  return page.evaluate((width) => {
    const { left, right } = document.querySelector("nav [aria-current]").getBoundingClientRect();
    return left >= 0 && right <= width;
  }, WIDTH);
}

await run(async (browser) => {
  for (const dark of [false, true]) {
    const page = await open(browser, { width: WIDTH, height: 844, dark });
    const wrong = [];
    for (const place of PLACES) {
      await visit(page, place);
      await page.locator(".loading").first().waitFor({ state: "detached" });
      await shoot(page, `phone${place.replace(/[0-9a-f-]{36}/, "one").replaceAll("/", "-")}-${dark ? "dark" : "light"}`);
      wrong.push(...(await outside(page)).map((thing) => `${place}: ${thing}`));
      if (!(await isTabInView(page))) wrong.push(`${place}: the tab of the screen is out of view`);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) wrong.push(`${place} is ${over} pixels wider than the window`);
      wrong.push(...(await faultsOf(page)).map((fault) => `${place}: ${fault}`));
    }
    check(await page.getByText("acme, admin").isVisible(), "user and tenant are seen");
    check(wrong.length === 0, wrong.join("\n"));
    await close(page);
  }
  const page = await open(browser, { width: WIDTH, height: 844 });
  await visit(page, "/workers", "worker-one");
  await page.getByRole("row").filter({ hasText: "worker-one" }).getByRole("button", { name: "Drain" }).click();
  await page.getByRole("button", { name: "Keep as it is" }).click();
  await visit(page, "/dead", "no queue for");
  await page.getByLabel("Select all on this page").check();
  await page.getByRole("button", { name: /^Discard \d/ }).click();
  await page.getByRole("button", { name: "Keep as it is" }).click();
  await close(page);
});
