import assert from "node:assert/strict";
import { test } from "node:test";
import { random } from "./made_run.mjs";
import { module } from "./modules.mjs";

const { sliceAt, tracksOf, visitColumns } = await module("tracks");

const tracks = (slices) => tracksOf([...slices.keys()], Float64Array.from(slices, ([start]) => start), Float64Array.from(slices, ([, end]) => end));
const visits = (track, view, width) => {
  const seen = [];
  visitColumns(track, view, width, (left, right, first, count, fill) => seen.push({ left, right, first, count, fill }));
  return seen;
};

test("slices that overlap come into tracks below each other, in any order of the data", () => {
  const [first, second, ...more] = tracks([[5, 20], [0, 10], [10, 12]]);
  assert.equal(more.length, 0);
  assert.deepEqual([...first.items], [1, 2]); // 0..10, then 10..12
  assert.deepEqual([...second.items], [0]);
  assert.deepEqual([...first.busy], [0, 10, 12]);
});

test("however many overlap, there are at most 16 tracks, and none overlaps in itself", () => {
  const made = tracks(Array.from({ length: 100 }, (_, i) => [i, 1000]));
  assert.equal(made.length, 16);
  assert.equal(made.reduce((sum, track) => sum + track.items.length, 0), 100);
  for (const { starts, ends } of made) starts.forEach((start, i) => assert.ok(i === 0 || start >= ends[i - 1]));
});

test("slices below a pixel become one column with its fill", () => {
  // 10 px for 100 ns: a column is 10 ns. Three slices of 2 ns in the first one, one of 30 ns from 20 on.
  const [track] = tracks([[0, 2], [3, 5], [6, 8], [20, 50]]);
  const seen = visits(track, { from: 0, to: 100 }, 10);
  assert.deepEqual(seen.map(({ left, right, first, count }) => [left, right, first, count]), [[0, 1, 0, 3], [2, 5, 3, 1]]);
  assert.ok(Math.abs(seen[0].fill - 0.6) < 1e-12);
});

test("a long slice behind short ones in a column is not merged with them", () => {
  const [track] = tracks([[0, 2], [5, 40]]);
  assert.deepEqual(visits(track, { from: 0, to: 100 }, 10).map(({ first, count }) => [first, count]), [[0, 1], [1, 1]]);
});

test("each visible slice is in exactly one visit, and there are at most two visits a pixel", () => {
  const draw = random(11);
  for (let round = 0; round < 200; ++round) {
    let at = 0;
    const slices = Array.from({ length: 300 }, () => {
      const start = (at += draw() < 0.5 ? 0 : draw() * 20);
      return [start, (at += draw() ** 6 * 100)];
    });
    const view = { from: draw() * at * 0.5, to: at * (0.5 + 0.5 * draw()) + 1 };
    const width = 1 + Math.floor(draw() * 120);
    const [track] = tracks(slices);
    const seen = visits(track, view, width);
    const inView = [...track.items.keys()].filter((i) => track.ends[i] >= view.from && track.starts[i] < view.to);
    assert.deepEqual(seen.flatMap(({ first, count }) => Array.from({ length: count }, (_, i) => first + i)), inView);
    assert.ok(seen.length <= 2 * width + 2, `${seen.length} visits for ${width} px`);
    for (const { left, right, fill } of seen) assert.ok(left < width && right >= -1 && left <= right && fill <= 1);
  }
});

test("a pointer finds the slice under it, else the nearest within its tolerance", () => {
  const [track] = tracks([[0, 10], [20, 30]]);
  assert.equal(sliceAt(track, 5, 0), 0);
  assert.equal(sliceAt(track, 12, 3), 0);
  assert.equal(sliceAt(track, 18, 3), 1);
  assert.equal(sliceAt(track, 15, 3), -1);
  assert.equal(sliceAt(track, 99, 3), -1);
});
