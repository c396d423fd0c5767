import { SERIES } from "./colours.js";
import type { RunData } from "./data.js";
import { extent, isMiss, isOverBound, waiting } from "./jobs.js";
import { type Track, tracksOf } from "./tracks.js";

/** A job or a slice: what can be pointed at, selected and read. */
export interface Item {
  kind: "job" | "slice";
  id: number;
}

/** One row of the picture: the jobs of a task, or a lane with its predicted slices above its measured ones. */
export interface Row {
  device: string;
  name: string;
  task: number; // -1: the lane of an engine
  top: number;
  height: number;
  bands: Band[];
  marks: Marks;
}

/** When late jobs ended, ascending. One that missed its deadline has that mark alone. */
export interface Marks {
  miss: Float64Array;
  over: Float64Array;
}

/** A track at its place in a row. */
export interface Band {
  kind: Item["kind"];
  faint: boolean; // predicted slices above measured ones; waiting above jobs
  top: number; // below the top of the row
  height: number;
  track: Track;
  series: Uint8Array; // [slices of the track] colour
}

const PADDING = 4;
const HEIGHT = 16; // of the slices of a lane
const FAINT_HEIGHT = 7;
const DEVICE_GAP = 7;

/** The rows of a run. They have no places yet. */
export function rowsOf(data: RunData): Row[] {
  return [...jobRows(data), ...laneRows(data)];
}

/** The rows without the jobs of tasks that are not shown, each at its place. */
export function arranged(rows: readonly Row[], shown: Uint8Array): Row[] {
  const kept = rows.filter((row) => row.task < 0 || shown[row.task]);
  let top = 0;
  kept.forEach((row, i) => {
    row.top = top + (i > 0 && kept[i - 1]!.device !== row.device ? DEVICE_GAP : 0);
    top = row.top + row.height;
  });
  return kept;
}

export function totalHeight(rows: readonly Row[]): number {
  const last = rows[rows.length - 1];
  return last ? last.top + last.height : 0;
}

/** The task whose colour a slice has; -1 where it belongs to no job. */
export function taskOfSlice(data: RunData, slice: number): number {
  const job = data.slices.job[slice]!;
  return job < 0 ? -1 : data.jobs.task[job]!;
}

function jobRows(data: RunData): Row[] {
  const { jobs, tasks } = data;
  const from = new Float64Array(jobs.count);
  const to = new Float64Array(jobs.count);
  for (let j = 0; j < jobs.count; ++j) ({ from: from[j], to: to[j] } = extent(jobs, j));
  return grouped(jobs.task, tasks.name.length).flatMap((items, task) => {
    if (items.length === 0) return [];
    const row = emptyRow("jobs", tasks.name[task]!, task);
    const waited = items.filter((job) => waiting(jobs, job) > 0);
    if (waited.length > 0) stack(row, tracksOf(waited, jobs.arrival, jobs.start), "job", true, () => task % SERIES.length);
    stack(row, tracksOf(items, from, to), "job", false, () => task % SERIES.length);
    const ends = (late: (job: number) => boolean) => Float64Array.from(items.filter(late), (job) => to[job]!).sort();
    row.marks = { miss: ends((job) => isMiss(jobs, job)), over: ends((job) => isOverBound(jobs, job) && !isMiss(jobs, job)) };
    return [row];
  });
}

function laneRows(data: RunData): Row[] {
  const { slices, lanes } = data;
  const series = (slice: number) => {
    const task = taskOfSlice(data, slice);
    return (task < 0 ? slices.name[slice]! : task) % SERIES.length;
  };
  return grouped(slices.lane, lanes.device.length).flatMap((items, lane) => {
    if (items.length === 0) return [];
    const row = emptyRow(lanes.device[lane]!, lanes.engine[lane]!, -1);
    const measured = items.filter((slice) => slices.measured[slice]);
    const predicted = items.filter((slice) => !slices.measured[slice]);
    const faint = measured.length > 0;
    if (predicted.length > 0) stack(row, tracksOf(predicted, slices.start, slices.end), "slice", faint, series);
    if (measured.length > 0) stack(row, tracksOf(measured, slices.start, slices.end), "slice", false, series);
    return [row];
  });
}

function emptyRow(device: string, name: string, task: number): Row {
  return { device, name, task, top: 0, height: 2 * PADDING, bands: [], marks: { miss: new Float64Array(), over: new Float64Array() } };
}

/** Adds tracks below those that a row has; they share the height of one slice as far as they stay visible. */
function stack(row: Row, tracks: Track[], kind: Item["kind"], faint: boolean, series: (item: number) => number): void {
  const height = Math.max((faint ? FAINT_HEIGHT : HEIGHT) / tracks.length, 4);
  for (const track of tracks) {
    row.bands.push({ kind, faint, top: row.height - PADDING, height, track, series: Uint8Array.from(track.items, series) });
    row.height += height;
  }
  row.height += faint ? 1 : 0;
}

/** Positions of the values 0, 1, ... in a column. */
function grouped(values: Int32Array, count: number): number[][] {
  const groups: number[][] = Array.from({ length: count }, () => []);
  values.forEach((value, i) => groups[value]?.push(i));
  return groups;
}
