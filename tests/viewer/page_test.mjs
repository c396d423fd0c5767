// The page as a reader has it: in headless Chromium, from a file.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startBrowser } from "./browser.mjs";
import { madeRun, OVER, pageWith, PLANTED } from "./made_run.mjs";

let browser;
const html = pageWith(madeRun({ jobs: 2000, seed: 1 }));
before(async () => (browser = await startBrowser()));
after(() => browser?.close());

const status = (page) => page.textContent("#status");
const framesDrawn = (page) => page.evaluate(() => performance.getEntriesByName("tutti-frame").length);
const drawn = async (page) => (await page.locator("#lanes").screenshot()).toString("base64");
const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

test("opens without a complaint and without a request", async () => {
  const { page, complaints } = await browser.open(html);
  assert.equal(await page.title(), "A made run of 2000 jobs - tutti");
  assert.equal(await page.textContent("#late-count"), "3 misses, 4 over their bound");
  assert.ok(await framesDrawn(page) >= 1);
  assert.deepEqual(complaints, []);
});

test("n finds each miss and each job over its bound, p goes back, and each is read with its attribution", async () => {
  const { page, complaints } = await browser.open(html);
  const planted = [...PLANTED, ...OVER].sort((a, b) => a.part - b.part);
  for (const [i, { cause, late }] of planted.entries()) {
    await page.keyboard.press("n");
    const verdict = late ? "missed its deadline by " : "met its deadline, ";
    assert.match(await status(page), new RegExp(`^Late job ${i + 1} of 4: inspect \\d+ at .* ${verdict}.*Attribution: ${cause}: .*over its bound`));
    assert.match(await page.textContent("#numbers"), new RegExp(`attribution${cause}`));
  }
  await page.keyboard.press("n");
  assert.match(await status(page), /^Late job 1 of 4/);
  await page.keyboard.press("p");
  assert.match(await status(page), /^Late job 4 of 4.*missed its deadline by 4\.002 ms/);
  assert.equal(await page.getAttribute("#status", "aria-live"), "polite");
  assert.deepEqual(complaints, []);
});

test("Tab and Enter reach the misses too, and focus is visible wherever it goes", async () => {
  const { page } = await browser.open(html);
  const reached = [];
  for (let i = 0; i < 40; ++i) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const element = document.activeElement;
      return element === document.body ? null
        : { id: element.id, name: element.textContent.trim().slice(0, 30), outline: getComputedStyle(element).outlineStyle };
    });
    if (focus === null) break;
    assert.equal(focus.outline, "solid", JSON.stringify(focus));
    reached.push(focus.id || focus.name);
  }
  for (const id of ["previous-late", "next-late", "zoom-in", "zoom-out", "whole-run", "filter", "scroller", "inspect 273"])
    assert.ok(reached.includes(id), `${id} in ${reached}`);
  await page.focus("#next-late");
  await page.keyboard.press("Enter");
  assert.match(await status(page), /^Late job 1 of 4/);
  await page.locator("#late button").nth(3).press("Enter");
  assert.match(await status(page), /^Late job 4 of 4/);
});

test("keys zoom and pan the lanes, and 0 shows the whole run again", async () => {
  const { page } = await browser.open(html);
  await page.focus("#scroller");
  const whole = await drawn(page);
  const seen = new Set([whole]);
  for (const key of ["+", "ArrowRight", "End", "ArrowLeft", "Home", "+", "-", "Shift+ArrowRight"]) {
    await page.keyboard.press(key);
    await frame(page);
    const now = await drawn(page);
    if (key !== "-") assert.ok(!seen.has(now), `${key} changes the lanes`);
    seen.add(now);
  }
  await page.keyboard.press("0");
  await frame(page);
  assert.equal(await drawn(page), whole);
});

for (const [deviceScaleFactor, presses] of [[1, 1], [1, 5], [1.25, 2], [2, 1]])
  test(`the picture after a drag is that of a fresh drawing of its window, ${presses} steps zoomed out, with ${deviceScaleFactor} pixels each`, async () => {
    const opened = async (width) => {
      const { page } = await browser.open(html, { viewport: { width, height: 900 }, deviceScaleFactor });
      await page.keyboard.press("n");
      for (let i = 0; i < presses; ++i) await page.keyboard.press("-");
      await frame(page);
      return { page, box: await page.locator("#lanes").boundingBox() };
    };
    // Without the frame's round corners.
    const picture = async ({ page, box }) => (await page.screenshot({
      clip: { x: Math.ceil(box.x), y: Math.ceil(box.y), width: Math.floor(box.width) - 1, height: Math.floor(box.height) - 6 },
    })).toString("base64");
    // An arrow moves the view by a tenth of its width; a drag by as many pixels ends at the same window.
    const width = 1280 - ((await opened(1280)).box.width % 20);
    const panned = await opened(width);
    const { page, box } = panned;
    await page.mouse.move(box.x + box.width - 50, box.y + 12);
    await page.mouse.down();
    for (let i = 1; i <= 30; ++i) {
      await page.mouse.move(box.x + box.width - 50 - Math.round((i * box.width) / 50), box.y + 12);
      await frame(page);
    }
    await page.mouse.up();
    await page.mouse.move(5, 5);
    await frame(page);
    const dragged = await picture(panned);
    const fresh = await opened(width);
    const other = fresh.page;
    await other.focus("#scroller");
    for (let i = 0; i < 6; ++i) await other.keyboard.press("ArrowRight");
    await other.locator("#filter").focus();
    await other.emulateMedia({ colorScheme: "dark" }); // what was drawn on the way is drawn again
    await frame(other);
    await other.emulateMedia({ colorScheme: "light" });
    await frame(other);
    assert.ok((await picture(fresh)) === dragged);
  });

test("tiles join without a seam: what is painted across their borders is what one canvas has there", async () => {
  const { page } = await browser.open(html);
  await page.keyboard.press("n");
  const box = await page.locator("#lanes").boundingBox();
  // Where a slice begins before the window, a canvas at the left edge covers the first 300 px. A border of tiles is below it.
  const border = () => page.evaluate(() => {
    const canvases = [...document.querySelectorAll("#lanes > canvas")];
    const places = canvases.slice(0, -1).map((canvas) => new DOMMatrix(canvas.style.transform).e);
    return canvases.at(-1).hidden ? -1 : places.find((x) => x > 210 && x < 290) ?? -1;
  });
  let compared = 0;
  for (let i = 0; i < 40; ++i) {
    await page.mouse.move(box.x + 600, box.y + 12);
    await page.mouse.down();
    await page.mouse.move(box.x + 560, box.y + 12, { steps: 2 });
    await page.mouse.up();
    await page.mouse.move(5, 5);
    await frame(page);
    if (await border() < 0) continue;
    ++compared;
    const clip = { x: Math.ceil(box.x) + 200, y: Math.ceil(box.y), width: 100, height: Math.floor(box.height) - 6 }; // behind the names
    const edge = (visibility) => page.evaluate((value) => ([...document.querySelectorAll("#lanes > canvas")].at(-1).style.visibility = value), visibility);
    const covered = (await page.screenshot({ clip })).toString("base64");
    await edge("hidden");
    assert.ok((await page.screenshot({ clip })).toString("base64") === covered, `after ${i} drags`);
    await edge("visible");
  }
  assert.ok(compared > 0);
});

test("j and k step through jobs and say their numbers", async () => {
  const { page } = await browser.open(html);
  await page.keyboard.press("j");
  assert.match(await status(page), /^inspect 0, met its deadline, 15\.\d+ ms before it/);
  await page.keyboard.press("j");
  assert.match(await status(page), /^alarm 0, /); // arrives at 12 ms, before the next image at 25 ms
  await page.keyboard.press("k");
  assert.match(await status(page), /^inspect 0, /);
  await page.keyboard.press("k");
  assert.equal(await status(page), "That is the first one.");
  await page.keyboard.press("Escape");
  assert.equal(await page.isVisible("#nothing-selected"), true);
});

test("a pointer shows numbers, a click selects, a drag pans, Ctrl and the wheel zoom", async () => {
  const { page, complaints } = await browser.open(html);
  await page.keyboard.press("n");
  const box = await page.locator("#lanes").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 12); // the job of the miss, in the middle third
  assert.match(await page.textContent("#tip"), /job: inspect 273\nverdict: missed/);
  const before = await drawn(page);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 + 80, box.y + 12, { steps: 4 });
  await page.mouse.up();
  await frame(page);
  const panned = await drawn(page);
  assert.notEqual(panned, before);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await frame(page);
  assert.notEqual(await drawn(page), panned);
  await page.mouse.click(box.x + box.width / 2, box.y + 12);
  assert.match(await page.textContent("#numbers"), /inspect 273/);
  await page.locator(".u-over").first().hover();
  assert.deepEqual(complaints, []);
});

test("two fingers zoom on a phone", async () => {
  const { page } = await browser.open(html, { viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });
  const before = await drawn(page);
  const box = await page.locator("#lanes").boundingBox();
  const touch = (type, ...xs) => client.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x: box.x + x, y: box.y + 40, id })) });
  const client = await page.context().newCDPSession(page);
  await touch("touchStart", 100, 150);
  for (const apart of [10, 20, 30, 40]) await touch("touchMove", 100 - apart, 150 + apart);
  await touch("touchEnd");
  await frame(page);
  assert.notEqual(await drawn(page), before);
});

test("a jump zooms to a job that never ran, and scrolls to its row", async () => {
  const data = madeRun({ jobs: 100 });
  data.jobs.verdicts.push("dropped");
  data.tasks = { name: Array.from({ length: 60 }, (_, task) => `task${task}`) };
  data.jobs.task = data.jobs.task.map((_, job) => job % 60);
  data.jobs.verdict = data.jobs.verdict.map((_, job) => (job === 59 ? 2 : 0));
  delete data.jobs.over_by_ns;
  data.jobs.start_ns[59] = data.jobs.finish_ns[59] = null;
  const { page, complaints } = await browser.open(pageWith(data));
  await page.keyboard.press("n");
  assert.match(await status(page), /^Late job 1 of 1: task59 \d+ at .* never ran/);
  const [scroller, label] = [await page.locator("#scroller").boundingBox(), await page.locator("#labels div").nth(59).boundingBox()];
  assert.ok(label.y >= scroller.y && label.y + label.height <= scroller.y + scroller.height);
  assert.deepEqual(complaints, []);
});

test("the filter shows some tasks alone", async () => {
  const { page } = await browser.open(html);
  await page.fill("#filter", "ala");
  assert.equal(await page.textContent("#late-count"), "0 misses, 0 over their bound");
  assert.equal(await page.locator("#margins tr").count(), 1);
  assert.doesNotMatch(await page.textContent("#labels"), /inspect/);
  assert.equal(await page.isDisabled("#next-late"), true);
  await page.fill("#filter", "");
  assert.equal(await page.textContent("#late-count"), "3 misses, 4 over their bound");
});

// inspect 0 runs from 0 to 12 ms; alarm 0 arrives at 4 ms, so it waits for 8 of them, and misses its deadline of 10 ms.
const waits = () => ({
  format: "tutti view", schema_version: 1, tasks: { name: ["inspect", "alarm"] },
  jobs: { verdicts: ["met", "missed"], causes: [], task: [0, 1], index: [0, 0], arrival_ns: [0, 4e6], start_ns: [0, 12e6],
    finish_ns: [12e6, 15e6], deadline_ns: [30e6, 14e6], predicted_ns: [12e6, 3e6], verdict: [0, 1] },
});

test("a job that waited shows for how long and for which", async () => {
  const { page, complaints } = await browser.open(pageWith(waits()));
  assert.equal(await page.textContent("#late-count"), "1 miss");
  // Thin above the jobs of alarm: from 4 to 12 ms.
  const [before, during, behind] = await page.evaluate(() => [2, 8, 13].map((ms) => {
    const lanes = document.getElementById("lanes");
    const x = ((ms + 0.15) / 15.3) * lanes.clientWidth; // 1 % of room at both ends
    const y = document.querySelector("#labels div").offsetHeight + 8;
    const left = (canvas) => canvas.getBoundingClientRect().left - lanes.getBoundingClientRect().left;
    const tile = [...lanes.querySelectorAll("canvas")].find((canvas) => !canvas.hidden && x >= left(canvas) && x < left(canvas) + canvas.clientWidth);
    return [...tile.getContext("2d").getImageData(x - left(tile), y, 1, 1).data].join();
  }));
  assert.notEqual(during, before);
  assert.equal(before, behind);
  await page.keyboard.press("n");
  assert.match(await status(page), /^Late job 1 of 1: alarm 0 at 15\.000 ms missed its deadline by 1\.000 ms\. Attribution: waiting: 8\.000 ms, while inspect 0 ran \(8\.000 ms\)\.$/);
  assert.match(await page.textContent("#numbers"), /waiting8\.000 ms/);
  assert.deepEqual(complaints, []);
});

test("what is simulated is not called measured", async () => {
  const texts = [];
  for (const simulated of [0, 1]) {
    const { page } = await browser.open(pageWith({ ...madeRun({ jobs: 100 }), simulated }));
    await page.keyboard.press("n");
    await page.mouse.move(700, 400);
    texts.push(await page.evaluate(() => document.body.innerText));
  }
  assert.match(texts[0], /above measured ones[^]*measured length against[^]*Load at .*, measured/);
  assert.match(texts[1], /above simulated ones[^]*simulated length against[^]*Load at .*, simulated/);
  assert.doesNotMatch(texts[1], /measured/);
});

test("the machine graph shows the load at the pointer", async () => {
  const { page } = await browser.open(pageWith(madeRun({ jobs: 5 })), { viewport: { width: 1280, height: 2600 } });
  const box = await page.locator("#lanes").boundingBox();
  await page.mouse.move(box.x + box.width / 100, box.y + 12); // the first job, at 0 ms
  for (let i = 0; i < 4; ++i) await page.keyboard.press("+");
  // Four copies of 32 MB in 0.8 ms each: 40 GB/s a GPU, 160 of 200 GB/s out of the memory.
  const loads = [];
  for (let x = 0; x < box.width; x += box.width / 60) {
    await page.mouse.move(box.x + x, box.y + 12);
    await frame(page);
    loads.push(parseFloat(await page.locator("#links tr").first().locator("td").last().textContent()));
  }
  assert.ok(Math.max(...loads) > 155 && Math.max(...loads) < 168, String(loads));
});

for (const colorScheme of ["light", "dark"])
  for (const [name, options] of Object.entries({
    "a phone's width": { viewport: { width: 360, height: 780 } },
    "125 %": { viewport: { width: 1024, height: 720 }, deviceScaleFactor: 1.25 },
  }))
    test(`nothing is wider than the page at ${name}, ${colorScheme}`, async () => {
      const { page, complaints } = await browser.open(html, { colorScheme, ...options });
      await page.keyboard.press("n");
      const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
      assert.ok(wide <= width, `${wide} > ${width}`);
      assert.deepEqual(complaints, []);
    });

test("prints to a PDF, in light colours, and is as before behind that", async () => {
  const { page, complaints } = await browser.open(html, { colorScheme: "dark" });
  await page.keyboard.press("n");
  const width = await page.evaluate(() => document.getElementById("lanes").clientWidth);
  const pdf = await page.pdf({ format: "A4" });
  assert.equal(pdf.subarray(0, 5).toString(), "%PDF-");
  assert.ok(pdf.length > 20_000);
  await frame(page);
  assert.equal(await page.evaluate(() => document.getElementById("lanes").clientWidth), width);
  assert.equal(await page.evaluate(() => document.documentElement.classList.contains("printing")), false);
  assert.deepEqual(complaints, []);
});

test("names that look like HTML stay text", async () => {
  const data = madeRun({ jobs: 10 });
  data.title = data.tasks.name[0] = data.slices.names[0] = data.machine.vertices.name[0] = '</script><!--<img src="x" onerror="alert(1)">';
  const { page, complaints } = await browser.open(pageWith(data));
  assert.equal(await page.textContent("#title"), data.title);
  assert.equal(await page.locator("img").count(), 0);
  assert.deepEqual(complaints, []);
});

test("data that cannot be read gives a sentence", async () => {
  const text = JSON.stringify(madeRun({ jobs: 10 }));
  for (const [data, sentence] of [["null", /has no data/], [text.slice(0, 5000), /cut off at character 5000 of 5000/],
    [text.replace('"schema_version":1', '"schema_version":2'), /schema_version 2.*newer tutti/]]) {
    const { page, complaints } = await browser.open(pageWith(data));
    assert.match(await page.textContent("#fault"), sentence);
    assert.equal(await page.isVisible("#run"), false);
    assert.deepEqual(complaints, []);
  }
});

test("a prediction has slices and no jobs, a run may have jobs and no slices", async () => {
  const { jobs, ...prediction } = madeRun({ jobs: 2 });
  prediction.slices.job = prediction.slices.job.map(() => null);
  const first = await browser.open(pageWith(prediction));
  assert.equal(await first.page.isVisible("#slices-part"), true);
  for (const id of ["#next-late", "#series-part", "#late-part"]) assert.equal(await first.page.isVisible(id), false);
  await first.page.keyboard.press("j");
  assert.match(await status(first.page), /^image0 on gpu0 up/);
  const { slices, machine, routes, ...run } = madeRun({ jobs: 100 });
  const second = await browser.open(pageWith(run));
  await second.page.keyboard.press("n");
  assert.match(await status(second.page), /^Late job 1 of 4/);
  assert.equal(await second.page.isVisible("#machine-part"), false);
  assert.deepEqual([...first.complaints, ...second.complaints], []);
});
