// SPDX-License-Identifier: MIT
// Weight, first paint, and how long each list takes from the click to its last row.
import { check, close, given, open, run } from "./page.mjs";

const MOST_BYTES = 300_000;
const PAINT_MS = 500;
const LIST_MS = 100;
const TRIES = 7;
const MORE_TRIES = 20; // a busy machine delays some of them, not what it takes
const LISTS = [
  ["/jobs", "table tbody tr"],
  ["/jobs?status=BLOCKED%2CPAUSED", "table tbody tr"],
  ["/jobs?filter=owner+%3D+%27bob%27", "table tbody tr"],
  ["/recovery", "table tbody tr"],
  [`/recovery/${given.ids.group}`, "table tbody tr"],
  ["/queues", "table tbody tr"],
  ["/dead", "h1 ~ .empty"],
  ["/workers", "h1 ~ .empty"],
  ["/overview", ".tiles"],
];

const least = (numbers) => Math.min(...numbers);

/** What goes over the wire to somebody who comes for the first time. */
async function weigh(browser) {
  const page = await (await browser.newContext({ baseURL: given.url })).newPage();
  const answers = [];
  page.on("response", (answer) => answers.push(answer));
  await page.goto("/", { waitUntil: "networkidle" });
  const sizes = await Promise.all(answers.map(async (answer) => (await answer.request().sizes()).responseBodySize));
  await page.context().close();
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function paint(page) {
  const took = [];
  while (took.length < TRIES || (least(took) >= PAINT_MS && took.length < MORE_TRIES)) {
    await page.reload();
    await page.getByRole("navigation").waitFor();
    took.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity));
  }
  return least(took);
}

/** In the page, from the change of the address until the rows are there. */
function listTime(page, place, rows) {
  return page.evaluate(
    ([to, selector]) =>
      new Promise((resolve) => {
        const look = (began) => (document.querySelector(selector) ? resolve(performance.now() - began) : setTimeout(look, 1, began));
        location.hash = "#/nowhere";
        setTimeout(() => {
          const began = performance.now();
          location.hash = `#${to}`;
          look(began);
        }, 50);
      }),
    [place, rows],
  );
}

await run(async (browser) => {
  const page = await open(browser);
  const bytes = await weigh(browser);
  console.log(`weight ${bytes} bytes`);
  const ms = await paint(page);
  console.log(`first paint ${ms.toFixed(0)} ms`);
  const slow = [];
  for (const [place, rows] of LISTS) {
    const took = [];
    while (took.length < TRIES || (least(took) >= LIST_MS && took.length < MORE_TRIES))
      took.push(await listTime(page, place, rows));
    console.log(`${place}: ${took.map((one) => one.toFixed(0)).join(" ")} ms`);
    if (least(took) >= LIST_MS) slow.push(`${place} takes ${least(took).toFixed(0)} ms`);
  }
  check(bytes > 0 && bytes < MOST_BYTES, `the page weighs ${bytes} bytes`);
  check(ms < PAINT_MS, `the first paint takes ${ms} ms`);
  check(slow.length === 0, slow.join("\n"));
  await close(page);
});
