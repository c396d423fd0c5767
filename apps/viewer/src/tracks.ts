import { gallop, lowerBound } from "./search.js";
import type { View } from "./view.js";

/**
 * Slices that do not overlap, by time. Starts and ends both ascend, so that binary search finds what is visible.
 *
 * `busy[i]` is the total length of the slices before the i-th, so that a column of many slices knows how full it is.
 */
export interface Track {
  items: Int32Array; // [n] which slice or job each is
  starts: Float64Array; // [n]
  ends: Float64Array; // [n]
  busy: Float64Array; // [n + 1]
}

/** Most tracks of one lane. Slices beyond them are cut off at the front where they overlap. */
const MOST_TRACKS = 16;

/** Slices of one lane in as few tracks as they need: each goes into the first one that is free. */
export function tracksOf(items: readonly number[], start: Float64Array, end: Float64Array): Track[] {
  const ordered = [...items].sort((a, b) => start[a]! - start[b]! || end[a]! - end[b]! || a - b);
  const rows: number[][] = [];
  const free: number[] = []; // [rows] end of the last slice
  for (const item of ordered) {
    let row = free.findIndex((instant) => instant <= start[item]!);
    if (row < 0) row = rows.length < MOST_TRACKS ? rows.push([]) - 1 : free.indexOf(Math.min(...free));
    rows[row]!.push(item);
    free[row] = Math.max(free[row] ?? -Infinity, end[item]!);
  }
  return rows.map((row) => track(row, start, end));
}

function track(row: readonly number[], start: Float64Array, end: Float64Array): Track {
  const made: Track = {
    items: Int32Array.from(row),
    starts: new Float64Array(row.length),
    ends: new Float64Array(row.length),
    busy: new Float64Array(row.length + 1),
  };
  let free = -Infinity;
  row.forEach((item, i) => {
    made.starts[i] = Math.max(start[item]!, free);
    made.ends[i] = free = Math.max(end[item]!, free);
    made.busy[i + 1] = made.busy[i]! + made.ends[i]! - made.starts[i]!;
  });
  return made;
}

/**
 * Calls visit(left, right, first, count, fill) for what is visible of a track, in pixels from the left; slices that
 * reach beyond the view are not cut off.
 *
 * Slices narrower than a pixel that begin in one column of pixels are one visit, with the part of the column that they
 * fill; a slice of at least a pixel is a visit of its own. The number of visits is at most twice the width, and each
 * takes a logarithmic time.
 */
export function visitColumns(
  track: Track, view: View, width: number,
  visit: (left: number, right: number, first: number, count: number, fill: number) => void,
): void {
  const { starts, ends, busy } = track;
  const scale = width / (view.to - view.from);
  const stop = lowerBound(starts, view.to);
  let i = lowerBound(ends, view.from);
  while (i < stop) {
    const left = (starts[i]! - view.from) * scale;
    const right = (ends[i]! - view.from) * scale;
    if (right - left >= 1) {
      visit(left, right, i, 1, 1);
      ++i;
      continue;
    }
    const column = Math.floor(left);
    const columnEnd = view.from + (column + 1) / scale;
    let next = gallop(starts, columnEnd, i + 1, stop);
    // Only the last one can reach beyond the column: they do not overlap.
    if (next > i + 1 && (ends[next - 1]! - starts[next - 1]!) * scale >= 1) --next;
    visit(column, column + 1, i, next - i, Math.min((busy[next]! - busy[i]!) * scale, 1));
    i = next;
  }
}

/** Position in the track of the slice at an instant, or of the nearest one at most `tolerance` ns away; -1: none. */
export function sliceAt(track: Track, instant: number, tolerance: number): number {
  const { starts, ends } = track;
  const after = lowerBound(ends, instant);
  let best = -1;
  let distance = tolerance;
  for (const i of [after, after - 1]) {
    if (i < 0 || i >= starts.length) continue;
    const away = Math.max(starts[i]! - instant, instant - ends[i]!, 0);
    if (away <= distance) [best, distance] = [i, away];
    if (away === 0) break;
  }
  return best;
}
