import assert from "node:assert/strict";
import { test } from "node:test";
import { module } from "./modules.mjs";

const { around, gridOf, panned, zoomed } = await module("view");
const { windowOf } = await module("tiles");
const limits = { from: 0, to: 1000 };

test("zooming keeps the instant under the pointer in its place", () => {
  // 300 stands a quarter of 200..600 from the left; half of the span around it is 200: 250..450.
  assert.deepEqual(zoomed({ from: 200, to: 600 }, 0.5, 300, limits), { from: 250, to: 450 });
});

test("zooming out ends at the whole run, zooming in at 20 ns", () => {
  assert.deepEqual(zoomed({ from: 200, to: 600 }, 10, 300, limits), limits);
  const view = zoomed({ from: 200, to: 600 }, 1e-6, 300, limits);
  assert.equal(Math.round(view.to - view.from), 20);
});

test("panning stops at the ends and keeps the span", () => {
  assert.deepEqual(panned({ from: 200, to: 600 }, -500, limits), { from: 0, to: 400 });
  assert.deepEqual(panned({ from: 200, to: 600 }, 500, limits), { from: 600, to: 1000 });
  assert.deepEqual(panned(limits, 500, limits), limits);
});

test("an interval is shown in the middle third", () => {
  assert.deepEqual(around(400, 500, 10, limits), { from: 300, to: 600 });
  assert.deepEqual(around(500, 500, 10, limits), { from: 485, to: 515 });
});

test("however far a view is panned, its span stays the same to the last bit", () => {
  const run = { from: 0, to: 123_456_789_012 };
  let view = zoomed(run, 1e-3 / 3, 98_765_432_109, run);
  const span = view.to - view.from;
  for (let i = 0; i < 1000; ++i) {
    view = panned(view, (i % 2 ? -1 : 1) * span * (0.1 + i / 700), run);
    assert.equal(view.to - view.from, span);
  }
});

test("a window begins on a pixel, in the tile that holds its start", () => {
  // 600 px for 1,200 ns: a tile of 300 px is 600 ns, a pixel 2 ns. 1,505 is 305 ns, or 152.5 px, behind the start of tile 2.
  const { length, first, shift, view } = windowOf({ from: 1505, to: 2705 }, 600, 1, gridOf({ from: 0, to: 10_000 }));
  assert.deepEqual([length, first, shift], [600, 2, 153]);
  assert.deepEqual(view, { from: 1506, to: 2706 });
  // With two pixels of the screen for one, half a pixel is one.
  assert.equal(windowOf({ from: 1505, to: 2705 }, 600, 2, gridOf({ from: 0, to: 10_000 })).shift, 152.5);
  // A view that starts before 0 has tiles with negative numbers.
  assert.deepEqual(windowOf({ from: -100, to: 1100 }, 600, 1, 1).first, -1);
});
