// SPDX-License-Identifier: MIT
// The chart of the overview: failures are drawn, in a colour that its legend names with their number.
import { check, close, open, run, visit } from "./page.mjs";

/** How many pixels of the chart have the colour of this line. */
function drawn(page, name) {
  return page.evaluate((line) => {
    const entry = [...document.querySelectorAll(".legend li")].find((one) => one.textContent.trim().startsWith(line));
    const stroke = getComputedStyle(entry.querySelector("line")).stroke;
    const wanted = stroke.match(/\d+/g).slice(0, 3).map(Number);
    const canvas = document.querySelector(".chart canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4)
      if (data[at + 3] > 200 && wanted.every((part, index) => Math.abs(part - data[at + index]) < 8)) count++;
    return count;
  }, name);
}

await run(async (browser) => {
  const page = await open(browser);
  await visit(page, "/overview", "Longest waiting");
  // The counts lag some seconds behind what has happened.
  await page.getByText(/[1-9]\d* failed/).first().waitFor({ timeout: 120000 }).catch(() => undefined);
  const legend = page.locator(".legend");
  const names = ["accepted", "started", "finished", "failed", "cancelled"];
  for (const name of names) await legend.getByText(name).waitFor();
  check(!(await legend.innerText()).includes("--"), `the legend has numbers: ${await legend.innerText()}`);
  const colours = await legend.locator("line").evaluateAll((lines) => lines.map((line) => getComputedStyle(line).stroke));
  check(new Set(colours).size === names.length, `each line has a colour of its own: ${colours}`);
  await page.waitForFunction(() => document.querySelector(".chart canvas")?.width > 0);
  check((await drawn(page, "failed")) > 20, "failures are drawn");
  // What is pointed at is told: the minute of the failure is among the last ones.
  const box = await page.locator(".chart canvas").boundingBox();
  let seen = false;
  for (let x = box.x + box.width - 2; !seen && x > box.x + box.width * 0.5; x -= box.width / 120) {
    await page.mouse.move(x, box.y + box.height / 2);
    seen = /failed\s*[1-9]/.test(await legend.innerText());
  }
  check(seen, "the number of failures of a minute is told where it is pointed at");
  await close(page);
});
