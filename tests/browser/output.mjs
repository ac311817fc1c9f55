// SPDX-License-Identifier: MIT
// What a job writes: colours as text, both streams in the order in which they come, the end of a long
// one first, and what is found in it.
import { writeFileSync } from "node:fs";
import { check, close, faultsOf, given, open, run, shoot, visit } from "./page.mjs";

const { ids, gates, lines } = given;
const log = (page) => page.getByRole("log");
const texts = (page) => log(page).locator(".line").allInnerTexts();

async function coloursAreText(page, dark) {
  await visit(page, `/jobs/${ids.colours}`, "plain end");
  const span = (text) => log(page).getByText(text, { exact: true });
  const look = (text) => span(text).evaluate((element) => {
    const { color, fontWeight, textDecorationLine } = getComputedStyle(element);
    return { color, fontWeight, textDecorationLine };
  });
  const [plain, red, green] = [await look("plain end"), await look("red"), await look("rgb green")];
  check(red.color !== plain.color && green.color !== plain.color && red.color !== green.color, "colours are shown");
  check((await look("bold")).fontWeight === "700", "bold is shown");
  check((await look("under")).textDecorationLine === "underline", "underlined is shown");
  const text = await log(page).innerText();
  check(!/[\x00-\x08\x0e-\x1f\x7f-\x9f]|\[3[0-9]m|evil title/.test(text), `controls are left out: ${JSON.stringify(text)}`);
  check(text.includes("100%") && !text.includes("50%"), "a carriage return writes the line anew");
  check(text.includes("<img src=x onerror=alert(1)>"), "markup is text");
  check((await log(page).locator("img").count()) === 0, "nothing becomes an element");
  check(text.includes("went wrong"), "both streams are shown");
  await page.getByLabel("Line numbers").check();
  await shoot(page, `output-${dark ? "dark" : "light"}`);
  const found = await faultsOf(page);
  check(found.length === 0, found.join("\n"));
  await page.getByLabel("Line numbers").uncheck();
}

async function bothStreamsAsTheyCome(page) {
  await visit(page, `/jobs/${ids.gated}`, "out 1");
  const expected = ["out 1"];
  for (const [gate, text] of [["a", "err 1"], ["b", "out 2"], ["c", "err 2"]]) {
    writeFileSync(`${gates}/${gate}`, "");
    await log(page).getByText(text, { exact: true }).waitFor();
    expected.push(text);
  }
  check(JSON.stringify(await texts(page)) === JSON.stringify(expected), `in the order of time: ${await texts(page)}`);
  await page.getByRole("group", { name: "Stream" }).getByRole("button", { name: "stderr" }).click();
  await log(page).getByText("out 1").waitFor({ state: "detached" });
  check(JSON.stringify(await texts(page)) === '["err 1","err 2"]', "one stream alone");
  writeFileSync(`${gates}/d`, "");
  await page.getByText("finished", { exact: true }).first().waitFor();
  await page.getByText("following").waitFor({ state: "detached" });
}

async function theEndOfALongOneFirst(page) {
  let bytes = 0;
  page.on("response", async (answer) => {
    if (answer.url().includes("/output/")) bytes += (await answer.body().catch(() => "")).length;
  });
  await visit(page, `/jobs/${ids.long}`, `line ${lines} of`);
  const first = async () => Number(/line (\d+)/.exec((await texts(page))[0])[1]);
  const before = await first();
  check(before > lines / 2 && bytes < 100_000, `only the end is loaded, not ${bytes} bytes from line ${before}`);
  await page.getByText("Nothing yet").waitFor({ state: "detached" });
  await page.getByLabel("Find in what is loaded").fill(`LINE ${before - 1} OF`);
  await page.getByText("No line has it.").waitFor();
  await page.getByRole("button", { name: /^Load earlier stdout/ }).click();
  await page.getByText("line 1 of 1 with it").waitFor();
  const now = await first();
  check(now < before, "the earlier part is there");
  check(await log(page).locator(".current").isVisible(), "what is found is looked at");
  const all = (await texts(page)).slice(0, -1).map((line) => Number(/line (\d+)/.exec(line)[1]));
  check(all.every((number, at) => number === now + at), "no line is missing or doubled");
  await page.getByLabel("Find in what is loaded").fill(`line ${lines}`);
  await page.getByText("line 1 of 1 with it").waitFor();
  // To the beginning, and the numbers are those of the file.
  while ((await page.getByRole("button", { name: /^Load earlier/ }).count()) > 0) {
    const top = await first();
    await page.getByRole("button", { name: /^Load earlier/ }).click();
    await log(page).getByText(`line ${top - 1} of`).waitFor({ state: "attached" });
  }
  check((await first()) === 1, "all of it can be loaded");
  await page.getByRole("button", { name: "Next match" }).click();
  await shoot(page, "output-found");
  await page.getByLabel("Wrap").uncheck();
  check((await log(page).evaluate((element) => element.scrollWidth > element.clientWidth)), "long lines are not wrapped");
  await page.getByLabel("Wrap").check();
  check((await log(page).evaluate((element) => element.scrollWidth <= element.clientWidth)), "long lines are wrapped");
}

async function noMoreThanThePageHolds(page) {
  await visit(page, `/jobs/${ids.endless}`, "12000");
  await page.getByRole("button", { name: /^Load earlier stdout/ }).click();
  await page.getByText("The page holds at most 10,000 lines; save stdout to see all.").waitFor();
  await log(page).locator(".line").nth(9_000).waitFor({ state: "attached" });
  const count = await log(page).locator(".line").count();
  check(count <= 10_001, `it holds ${count} lines`);
  check((await page.getByRole("button", { name: /^Load earlier/ }).count()) === 0, "no more is offered");
}

await run(async (browser) => {
  for (const dark of [false, true]) {
    const page = await open(browser, { dark });
    await coloursAreText(page, dark);
    await close(page);
  }
  const page = await open(browser);
  await bothStreamsAsTheyCome(page);
  await theEndOfALongOneFirst(page);
  await noMoreThanThePageHolds(page);
  await close(page);
});
