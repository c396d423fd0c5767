// The page that `tutti view` makes of a journal of a run: 2,000 jobs on the simulated machine, three of them made late.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";

const tutti = process.env.TUTTI;
const options = { skip: tutti ? false : "TUTTI names no program" };
const root = fileURLToPath(new URL("../..", import.meta.url));

const PLANTED = [
  { job: 340, fault: "{kind: slow_kernels, task: inspect, times: 1, by: 70 ms, jobs: [340, 340]}", cause: "kernel" },
  { job: 1041, fault: "{kind: slow_transfers, task: inspect, times: 1, by: 31 ms, jobs: [1041, 1041]}", cause: "transfer" },
  { job: 1760, fault: "{kind: slow_kernels, task: inspect, times: 1, by: 65 ms, jobs: [1760, 1760]}", cause: "kernel" },
];

let browser, folder, html;
before(async () => {
  if (!tutti) return;
  folder = mkdtempSync(join(tmpdir(), "tutti-journal-"));
  const path = (name) => join(folder, name);
  writeFileSync(path("tasks.yaml"), readFileSync(join(root, "configs/tasks/wafer-inspection.yaml"), "utf8")
    .replace(/machine: .*/, `machine: ${join(root, "configs/machines/h200x4.yaml")}`));
  writeFileSync(path("faults.yaml"), `version: 1\nfaults:\n${PLANTED.map(({ fault }) => `  - ${fault}\n`).join("")}`);
  const run = ["run", path("tasks.yaml"), "--set", "image=400kB", "--jobs", "2000", "--faults", path("faults.yaml"), "--journal", path("run.journal")];
  assert.throws(() => execFileSync(tutti, run, { stdio: "ignore" }), { status: 1 }); // deadlines are missed
  execFileSync(tutti, ["view", path("run.journal"), "--html", path("run.html")]);
  assert.ok(statSync(path("run.html")).size < 10e6);
  html = readFileSync(path("run.html"), "utf8");
  browser = await startBrowser();
});
after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

test("each planted miss is found with the keyboard and read with its attribution", options, async () => {
  const { page, complaints } = await browser.open(html);
  assert.equal(parseInt(await page.textContent("#late-count"), 10), PLANTED.length); // misses; jobs behind them may be late, too
  const read = [];
  do {
    await page.keyboard.press("n");
    read.push(await page.textContent("#status"));
  } while (read.length < parseInt(/ of (\d+):/.exec(read[0])[1], 10));
  for (const { job, cause } of PLANTED)
    assert.ok(read.some((line) => new RegExp(`inspect ${job} at .* missed its deadline by .*Attribution: ${cause}`).test(line)), `${job}: ${read}`);
  assert.deepEqual(complaints, []);
});

test("it zooms and prints, its lanes are those of the machine, and nothing is requested", options, async () => {
  const { page, complaints } = await browser.open(html);
  const drawn = async () => (await page.locator("#lanes").screenshot()).toString("base64");
  const whole = await drawn();
  await page.keyboard.press("n");
  await page.focus("#scroller");
  await page.keyboard.press("+");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  assert.notEqual(await drawn(), whole);
  assert.match(await page.textContent("#labels"), /gpu0[^]*kernels[^]*gpu3/);
  assert.ok((await page.pdf()).length > 10_000);
  assert.deepEqual(complaints, []);
});

test("a journal that is cut off shows what could be read, and a note", options, async () => {
  const cut = join(folder, "cut.journal");
  writeFileSync(cut, readFileSync(join(folder, "run.journal")).subarray(0, 60_000));
  assert.throws(() => execFileSync(tutti, ["view", cut, "--html", join(folder, "cut.html")], { stdio: "ignore" }), { status: 2 });
  const { page, complaints } = await browser.open(readFileSync(join(folder, "cut.html"), "utf8"));
  assert.match(await page.textContent("body"), /cut off at byte \d+/);
  assert.deepEqual(complaints, []);
});
