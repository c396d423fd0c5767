import { type Scheme, SERIES } from "./colours.js";
import type { RunData } from "./data.js";
import { extent, jobName } from "./jobs.js";
import { arranged, type Band, type Item, type Row, rowsOf, taskOfSlice, totalHeight } from "./rows.js";
import { lowerBound, upperBound } from "./search.js";
import type { State } from "./state.js";
import { packed, Strips } from "./strips.js";
import { formatTicks, tickStep, ticksIn } from "./time.js";
import { sliceAt, visitColumns } from "./tracks.js";

const FONT = "11px system-ui, sans-serif";
const LETTER = 6.2; // px, a wide average of FONT
const LEAST_NAMED = 44; // px: narrower slices have no name
const LARGEST_CANVAS = 16000; // px; browsers draw nothing on much larger ones
const OVERVIEW = 12; // px
const NARROW = 6; // pixels: narrower slices are painted in strips
const FAINT = 0.6; // of predicted slices above measured ones
const PACKED = SERIES.map((series) => packed(series.fill));
const NEAR = 4; // px: how far beside a slice a pointer still means it

/** A canvas that is sharp at the resolution of the screen, or of print. */
class Surface {
  readonly context: CanvasRenderingContext2D;
  width = 0;
  height = 0;

  constructor(readonly canvas: HTMLCanvasElement) {
    this.context = canvas.getContext("2d", { alpha: false })!;
  }
  resize(width: number, height: number, resolution: number): void {
    const scale = Math.min(resolution, LARGEST_CANVAS / Math.max(height, 1));
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }
}

/** The lanes of the picture, and above them the time axis and an overview of the whole run. */
export class Lanes {
  rows: Row[] = []; // those that are shown
  readonly all: Row[];
  private readonly lanes: Surface;
  private readonly axis: Surface;
  private readonly strips = new Strips();
  private misses = new Float64Array();

  constructor(private data: RunData, lanes: HTMLCanvasElement, axis: HTMLCanvasElement, private scheme: Scheme) {
    this.all = rowsOf(data);
    this.lanes = new Surface(lanes);
    this.axis = new Surface(axis);
  }

  get width(): number {
    return this.lanes.width;
  }
  recolour(scheme: Scheme): void {
    this.scheme = scheme;
  }
  /** Leaves out the jobs of tasks that are not shown. @post resize() fits the canvas to the rest. */
  arrange(shown: Uint8Array): void {
    this.rows = arranged(this.all, shown);
    this.misses = Float64Array.from(this.rows.flatMap((row) => [...row.misses])).sort();
  }
  get height(): number {
    return totalHeight(this.rows);
  }
  resize(width: number, resolution: number): void {
    this.lanes.resize(width, Math.max(this.height, 1), resolution);
    this.axis.resize(width, OVERVIEW + 20, resolution);
    this.strips.resize(this.lanes.canvas.width, Math.max(...this.rows.map((row) => row.bands.length), 1) * this.rows.length);
  }
  instantAt(x: number, state: State): number {
    return state.view.from + (x / this.width) * (state.view.to - state.view.from);
  }

  /** The job or slice at a place of the canvas. */
  itemAt(x: number, y: number, state: State): Item | null {
    const row = this.rows.find((one) => y >= one.top && y < one.top + one.height);
    const instant = this.instantAt(x, state);
    const tolerance = (NEAR / this.width) * (state.view.to - state.view.from);
    const bands = [...(row?.bands ?? [])].sort((a, b) => away(a, y - row!.top) - away(b, y - row!.top));
    for (const band of bands) {
      const found = sliceAt(band.track, instant, tolerance);
      if (found >= 0) return { kind: band.kind, id: band.track.items[found]! };
    }
    return null;
  }

  /** Draws the rows between two heights of the canvas, and the axis. */
  draw(state: State, top: number, bottom: number): void {
    this.drawAxis(state);
    const { context, width } = this.lanes;
    context.fillStyle = this.scheme.paper;
    context.fillRect(0, top, width, bottom - top);
    const visible = this.rows.filter((row) => row.top + row.height >= top && row.top <= bottom);
    for (const row of visible) {
      context.fillStyle = this.scheme.lane;
      context.fillRect(0, row.top + 1, width, row.height - 2);
    }
    this.drawGrid(state, top, bottom);
    this.drawExtent(state, top, bottom);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawSlices(visible, state);
    for (const row of visible) this.drawMisses(row, state);
    this.drawMarked(visible, state);
    if (state.cursor !== null) this.line(state.cursor, state, top, bottom, this.scheme.muted, []);
  }

  private x(instant: number, state: State): number {
    return ((instant - state.view.from) / (state.view.to - state.view.from)) * this.width;
  }

  private drawAxis(state: State): void {
    const { context, width } = this.axis;
    const { from, to } = state.view;
    context.fillStyle = this.scheme.paper;
    context.fillRect(0, 0, width, this.axis.height);
    this.drawOverview(state);
    const step = this.step(state);
    const ticks = ticksIn(from, to, step);
    context.font = FONT;
    context.textBaseline = "bottom";
    context.fillStyle = this.scheme.ink;
    let end = 0; // of the label before
    formatTicks(ticks, step).forEach((label, i) => {
      const x = this.x(ticks[i]!, state);
      const wide = context.measureText(label).width;
      const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
      if (left < end) return;
      context.fillText(label, left, this.axis.height - 3);
      end = left + wide + 6;
    });
  }
  private step(state: State): number {
    return tickStep(state.view.to - state.view.from, Math.max(this.width / 90, 2));
  }

  private drawOverview(state: State): void {
    const { context, width } = this.axis;
    const { from, to } = state.limits;
    const place = (instant: number) => ((instant - from) / (to - from)) * width;
    context.fillStyle = this.scheme.grid;
    context.fillRect(0, 3, width, OVERVIEW - 6);
    context.fillStyle = this.scheme.focus;
    const left = place(state.view.from);
    const right = Math.max(place(state.view.to), left + 2);
    context.fillRect(left, 2, right - left, OVERVIEW - 4);
    context.fillStyle = this.scheme.miss;
    apart(this.misses, 0, this.misses.length, place, (x) => context.fillRect(x - 1, 0, 2, OVERVIEW));
    context.strokeStyle = this.scheme.ink;
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, 0.5, right - left + 1, OVERVIEW - 1);
  }

  private drawGrid(state: State, top: number, bottom: number): void {
    const { context } = this.lanes;
    context.fillStyle = this.scheme.grid;
    for (const tick of ticksIn(state.view.from, state.view.to, this.step(state)))
      context.fillRect(Math.round(this.x(tick, state)), top, 1, bottom - top);
  }

  /** All slices: narrow ones in strips, then the others, with their names where there is room. */
  private drawSlices(rows: readonly Row[], state: State): void {
    const { context, width } = this.lanes;
    const bands = rows.flatMap((row) => row.bands.map((band) => ({ band, top: row.top + band.top })));
    this.strips.clear();
    const wide = bands.map(({ band }, strip) => this.paintNarrow(band, strip, state));
    this.strips.finish();
    context.imageSmoothingEnabled = false;
    bands.forEach(({ band, top }, strip) => {
      context.globalAlpha = band.faint ? FAINT : 1;
      this.strips.drawn(strip, context, top, width, band.height);
      this.drawWide(band, top, wide[strip]!, state);
    });
    context.globalAlpha = 1;
  }

  /** Paints a strip. Returns the positions in the track of what is too wide for it. */
  private paintNarrow(band: Band, strip: number, state: State): number[] {
    const wide: number[] = [];
    const hidden = packed(this.scheme.hidden);
    visitColumns(band.track, state.view, this.strips.width, (left, right, first, count, fill) => {
      if (right - left >= NARROW) {
        wide.push(first);
        return;
      }
      const shown = this.isShown(band.kind, band.track.items[first]!, state);
      this.strips.paint(strip, left, right, count > 1 ? fill : 1, shown ? PACKED[band.series[first]!]! : hidden);
    });
    return wide;
  }

  private drawWide(band: Band, top: number, wide: readonly number[], state: State): void {
    const { context, width } = this.lanes;
    let colour = "";
    for (const i of wide) {
      const item = band.track.items[i]!;
      const shown = this.isShown(band.kind, item, state);
      const series = SERIES[band.series[i]!]!;
      const wanted = shown ? series.fill : this.scheme.hidden;
      const left = Math.max(this.x(band.track.starts[i]!, state), 0);
      const right = Math.min(this.x(band.track.ends[i]!, state), width);
      if (wanted !== colour) context.fillStyle = colour = wanted;
      context.fillRect(left, top, right - left - 1, band.height); // a pixel apart from the next one
      if (!shown || band.faint || band.height < 12 || right - left < LEAST_NAMED) continue;
      context.fillStyle = colour = series.text;
      context.fillText(shortened(this.nameOf(band.kind, item), right - left - 8), left + 4, top + band.height / 2 + 0.5);
    }
  }
  private isShown(kind: Item["kind"], item: number, state: State): boolean {
    const task = kind === "job" ? this.data.jobs.task[item]! : taskOfSlice(this.data, item);
    return task < 0 || state.shown[task] === 1;
  }
  private nameOf(kind: Item["kind"], item: number): string {
    const { slices } = this.data;
    return kind === "job" ? jobName(this.data, item) : slices.names[slices.name[item]!]!;
  }

  /** A bar with a triangle on it where a job missed: its form says so too, not its colour alone. */
  private drawMisses(row: Row, state: State): void {
    if (row.misses.length === 0) return;
    const { context } = this.lanes;
    const first = lowerBound(row.misses, state.view.from);
    const last = upperBound(row.misses, state.view.to);
    context.fillStyle = this.scheme.miss;
    apart(row.misses, first, last, (instant) => this.x(instant, state), (x) => {
      context.fillRect(x - 1.5, row.top + 1, 3, row.height - 2);
      context.beginPath();
      context.moveTo(x - 5, row.top + 1);
      context.lineTo(x + 5, row.top + 1);
      context.lineTo(x, row.top + 9);
      context.fill();
    });
  }

  /** The selected job from its arrival to its finish, and a dashed line at its deadline. */
  private drawExtent(state: State, top: number, bottom: number): void {
    const job = this.jobOf(state.selected);
    if (job < 0) return;
    const { context } = this.lanes;
    const { jobs } = this.data;
    const { to } = extent(jobs, job);
    const left = this.x(jobs.arrival[job]!, state);
    context.globalAlpha = 0.15;
    context.fillStyle = this.scheme.focus;
    context.fillRect(left, top, Math.max(this.x(to, state) - left, 2), bottom - top);
    context.globalAlpha = 1;
    if (!Number.isNaN(jobs.deadline[job])) this.line(jobs.deadline[job]!, state, top, bottom, this.scheme.miss, [5, 3]);
  }

  /** Frames around what is selected, the slices of its job, and what is under the pointer. */
  private drawMarked(rows: readonly Row[], state: State): void {
    if (state.selected === null && state.hovered === null) return;
    const job = this.jobOf(state.selected);
    const owner = this.data.slices.job;
    const marked = (kind: Item["kind"], id: number) =>
      job < 0 ? is(state.selected, kind, id) : kind === "job" ? id === job : owner[id] === job;
    for (const row of rows)
      for (const band of row.bands) {
        const { track } = band;
        const stop = upperBound(track.starts, state.view.to);
        for (let i = lowerBound(track.ends, state.view.from); i < stop; ++i) {
          const id = track.items[i]!;
          if (is(state.hovered, band.kind, id)) this.frame(row, band, i, state, this.scheme.ink, 1);
          if (marked(band.kind, id)) this.frame(row, band, i, state, this.scheme.ink, 2);
        }
      }
  }
  private frame(row: Row, band: Band, i: number, state: State, colour: string, line: number): void {
    const { context } = this.lanes;
    const left = Math.max(this.x(band.track.starts[i]!, state), -4);
    const right = Math.min(this.x(band.track.ends[i]!, state), this.width + 4);
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.strokeRect(left - 0.5, row.top + band.top - 0.5, Math.max(right - left, 3), band.height + 1);
  }
  private jobOf(item: Item | null): number {
    if (item === null) return -1;
    return item.kind === "job" ? item.id : this.data.slices.job[item.id]!;
  }

  private line(instant: number, state: State, top: number, bottom: number, colour: string, dash: number[]): void {
    const { context } = this.lanes;
    const x = Math.round(this.x(instant, state)) + 0.5;
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.setLineDash([]);
  }
}

function is(item: Item | null, kind: Item["kind"], id: number): boolean {
  return item !== null && item.kind === kind && item.id === id;
}

/** Distance of a height from a band. */
function away(band: Band, y: number): number {
  return Math.max(band.top - y, y - band.top - band.height, 0);
}

/** Calls visit with the places of instants, leaving out those less than 2 px behind the one before. */
function apart(
  instants: Float64Array, from: number, to: number, place: (instant: number) => number, visit: (x: number) => void,
): void {
  let last = -Infinity;
  for (let i = from; i < to; ++i) {
    const x = place(instants[i]!);
    if (x - last >= 2) visit((last = x));
  }
}

function shortened(text: string, width: number): string {
  const letters = Math.floor(width / LETTER);
  return text.length <= letters ? text : `${text.slice(0, Math.max(letters - 1, 0))}\u2026`;
}
