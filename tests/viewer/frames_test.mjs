// A page of 100,000 slices: its size, its first paint, and its frames while it is panned. Times are printed and not
// asserted; the project's goals for them stand in apps/viewer/README.md.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";
import { madeRun, pageWith } from "./made_run.mjs";

const FRAMES = 240;
let browser;
const data = madeRun({ jobs: 4902, seed: 2 });
const html = pageWith(data);
before(async () => (browser = await startBrowser()));
after(() => browser?.close());

const quantile = (values, part) => [...values].sort((a, b) => a - b)[Math.min(Math.floor(part * values.length), values.length - 1)];
const summary = (values) => `median ${quantile(values, 0.5).toFixed(1)}, 95 % ${quantile(values, 0.95).toFixed(1)}, most ${quantile(values, 1).toFixed(1)} ms`;

/** Pans by a key press each frame, to and fro; times between frames and of the drawing in each. */
const pan = (page) => page.evaluate((frames) => new Promise((done) => {
  performance.clearMeasures();
  const scroller = document.getElementById("scroller");
  scroller.focus();
  const stamps = [];
  const step = (stamp) => {
    stamps.push(stamp);
    const key = stamps.length % 60 < 30 ? "ArrowRight" : "ArrowLeft";
    scroller.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    if (stamps.length < frames) requestAnimationFrame(step);
    else done({
      apart: stamps.slice(1).map((at, i) => at - stamps[i]),
      drawing: performance.getEntriesByName("tutti-frame").map((entry) => entry.duration),
    });
  };
  requestAnimationFrame(step);
}), FRAMES);

/** Time of the main thread for each frame in a trace, `dur` on the clock or `tdur` of the processor: of all tasks from one that runs animation frames to the next such one. */
function mainThread(trace, time) {
  const { traceEvents } = JSON.parse(trace.toString());
  const callbacks = traceEvents.filter((event) => event.name === "FireAnimationFrame");
  const tasks = traceEvents.filter((event) => event.name === "RunTask" && event.pid === callbacks[0].pid && event.tid === callbacks[0].tid)
    .sort((a, b) => a.ts - b.ts);
  const work = [];
  for (const task of tasks) {
    if (callbacks.some((event) => event.ts >= task.ts && event.ts < task.ts + task.dur)) work.push(0);
    if (work.length > 0) work[work.length - 1] += task[time] / 1000;
  }
  return work.slice(1, -1);
}

test("100,000 slices fit into 10 MB", () => {
  assert.ok(data.slices.lane.length >= 100_000);
  const size = Buffer.byteLength(html);
  console.log(`${data.slices.lane.length} slices: ${(size / 1e6).toFixed(2)} MB`);
  assert.ok(size < 10e6);
});

test("they are painted without a complaint", async () => {
  const { page, complaints } = await browser.open(html);
  const times = await page.evaluate(() => Object.fromEntries([...performance.getEntriesByType("paint"), ...performance.getEntriesByType("mark")]
    .map((entry) => [entry.name, entry.startTime])));
  console.log(`first paint ${times["first-contentful-paint"].toFixed(0)} ms, lanes drawn ${times["tutti-drawn"].toFixed(0)} ms`);
  assert.deepEqual(complaints, []);
});

const WINDOWS = [[1280, 900, 1], [1280, 2600, 1], [2600, 1300, 1], [2600, 1300, 2]];
for (const [presses, [width, height, deviceScaleFactor]] of [1, 4, 8].flatMap((presses) => WINDOWS.map((size) => [presses, size])))
  test(`they are panned, ${presses} steps zoomed in, in a window of ${width} by ${height} px, ${deviceScaleFactor} pixels each`, async () => {
    const { page, complaints } = await browser.open(html, { viewport: { width, height }, deviceScaleFactor });
    for (let i = 0; i < presses; ++i) await page.keyboard.press("+");
    await pan(page); // what is compiled on first use
    const { apart, drawing } = await pan(page);
    await browser.browser.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] });
    await pan(page);
    const trace = await browser.browser.stopTracing();
    console.log(`drawing a frame: ${summary(drawing)}`);
    console.log(`main thread a frame, traced: ${summary(mainThread(trace, "dur"))}`);
    console.log(`... of processor time: ${summary(mainThread(trace, "tdur"))}`);
    console.log(`frames apart: ${summary(apart)}`);
    assert.ok(drawing.length >= FRAMES - 2);
    assert.deepEqual(complaints, []);
  });
