import { type Scheme, SERIES } from "./colours.js";
import type { RunData } from "./data.js";
import { extent, jobName } from "./jobs.js";
import { arranged, type Band, type Item, type Marks, type Row, rowsOf, taskOfSlice, totalHeight } from "./rows.js";
import { lowerBound, upperBound } from "./search.js";
import type { State } from "./state.js";
import { packed, Strips } from "./strips.js";
import { resolutionOf, TILE, Tiles, type Window, windowOf } from "./tiles.js";
import { formatTicks, tickStep, ticksIn } from "./time.js";
import { sliceAt, visitColumns } from "./tracks.js";
import { gridOf, type View } from "./view.js";

const FONT = "11px system-ui, sans-serif";
const LETTER = 6.2; // px, a wide average of FONT
const LEAST_NAMED = 44; // px: narrower slices have no name
const OVERVIEW = 12; // px
const AXIS = OVERVIEW + 20; // px
const NARROW = 6; // pixels: narrower slices are painted in strips
const FAINT = 0.6; // of predicted slices above measured ones, and of waiting
const PACKED = SERIES.map((series) => packed(series.fill));
const NEAR = 4; // px: how far beside a slice a pointer still means it
const MARKS: readonly (keyof Marks)[] = ["over", "miss"]; // misses are painted over the others
const BEYOND = 6; // px: what stands this far beside a tile may reach into it

/** What the tiles show besides their part of the run; where it is another, they are painted again. */
interface Painted {
  length: number;
  top: number;
  bottom: number;
  selected: Item | null;
}

/** The lanes of the picture, and above them the time axis and an overview of the whole run. */
export class Lanes {
  rows: Row[] = []; // those that are shown
  width = 0;
  readonly all: Row[];
  private readonly tiles: Tiles;
  private readonly strips = new Strips();
  private readonly cursor: HTMLElement;
  private readonly hovered: HTMLElement;
  private edge!: CanvasRenderingContext2D; // what stands at the left edge, with the names of slices that begin before it
  private marks: Marks = { miss: new Float64Array(), over: new Float64Array() };
  private resolution = 1;
  private painted: Painted | null = null;

  /** @param axis  a canvas; @param lanes  an element for canvases */
  constructor(private data: RunData, lanes: HTMLElement, private axis: CanvasRenderingContext2D, private scheme: Scheme) {
    this.all = rowsOf(data);
    this.tiles = new Tiles(lanes);
    const mark = (name: string) => {
      const made = lanes.appendChild(document.createElement("div"));
      made.className = name;
      return made;
    };
    this.cursor = mark("cursor");
    this.hovered = mark("hovered");
  }

  recolour(scheme: Scheme): void {
    this.scheme = scheme;
    this.painted = null;
  }
  /** Leaves out the jobs of tasks that are not shown. @post resize() fits the canvases to the rest. */
  arrange(shown: Uint8Array): void {
    this.rows = arranged(this.all, shown);
    const all = (of: keyof Marks) => Float64Array.from(this.rows.flatMap((row) => [...row.marks[of]])).sort();
    this.marks = { miss: all("miss"), over: all("over") };
  }
  get height(): number {
    return totalHeight(this.rows);
  }
  resize(width: number, wanted: number): void {
    const height = Math.max(this.height, 1);
    this.width = width;
    this.resolution = resolutionOf(wanted, height);
    this.tiles.resize(width, height, this.resolution);
    fitted(this.axis, width, AXIS, this.resolution);
    this.edge?.canvas.remove();
    this.edge = this.tiles.canvas(Math.min(TILE, width));
    this.cursor.before(this.edge.canvas);
    this.strips.resize(Math.round(TILE * this.resolution), Math.max(...this.rows.map((row) => row.bands.length), 1) * this.rows.length);
    this.painted = null;
  }
  instantAt(x: number, state: State): number {
    const { from, to } = this.window(state).view;
    return from + (x / this.width) * (to - from);
  }

  /** The job or slice at a place of the lanes. */
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

  /** Shows the rows between two heights of the lanes, and draws the axis. */
  draw(state: State, top: number, bottom: number): void {
    const window = this.window(state);
    const { view } = window;
    const place: Place = (instant) => ((instant - view.from) / (view.to - view.from)) * this.width;
    this.drawAxis(state, view, place);
    const visible = this.rows.filter((row) => row.top + row.height >= top && row.top <= bottom);
    this.forget({ length: window.length, top, bottom, selected: state.selected });
    this.tiles.show(window, (context, part, width) => this.paint({ context, part, width, sticky: false }, visible, state));
    const { canvas } = this.edge;
    canvas.hidden = !visible.some((row) => row.bands.some((band) => this.namedAtEdge(band, view, state)));
    const width = Math.min(TILE, this.width);
    const part = { from: view.from, to: view.from + (window.length * width) / TILE };
    if (!canvas.hidden) this.paint({ context: this.edge, part, width, sticky: true }, visible, state);
    this.showMarks(state, visible, view, place);
  }

  private window(state: State): Window {
    return windowOf(state.view, this.width, this.resolution, gridOf(state.limits));
  }
  private forget(now: Painted): void {
    const before = this.painted;
    this.painted = now;
    if (before && Object.entries(now).every(([key, value]) => before[key as keyof Painted] === value)) return;
    this.tiles.clear();
  }

  /** Paints the rows of a tile, or of the edge. */
  private paint(tile: Tile, rows: readonly Row[], state: State): void {
    const { context, width } = tile;
    const { top, bottom } = this.painted!;
    context.fillStyle = this.scheme.paper;
    context.fillRect(0, top, width, bottom - top);
    context.fillStyle = this.scheme.lane;
    for (const row of rows) context.fillRect(0, row.top + 1, width, row.height - 2);
    this.drawGrid(tile, state);
    this.drawExtent(tile, state);
    context.font = FONT;
    context.textBaseline = "middle";
    this.drawSlices(tile, rows, state);
    for (const row of rows) this.drawMarks(tile, row);
    this.drawSelected(tile, rows, state);
  }

  /** Whether a slice begins before the view and reaches far enough into it for its name. */
  private namedAtEdge(band: Band, { from, to }: View, state: State): boolean {
    if (!isNamed(band)) return false;
    const { track } = band;
    const i = lowerBound(track.starts, from) - 1;
    return i >= 0 && track.ends[i]! - from >= (LEAST_NAMED / this.width) * (to - from) && this.isShown(band.kind, track.items[i]!, state);
  }

  /** The line at the cursor, and the frame around what is under the pointer. */
  private showMarks(state: State, rows: readonly Row[], view: View, place: Place): void {
    this.cursor.hidden = state.cursor === null;
    if (state.cursor !== null) this.cursor.style.transform = `translateX(${Math.round(place(state.cursor))}px)`;
    this.hovered.hidden = true;
    const { hovered } = state;
    if (hovered === null) return;
    visitBoxes(rows, view, place, this.width, (kind, id) => is(hovered, kind, id), ({ left, top, width, height }) => {
      this.hovered.hidden = false;
      Object.assign(this.hovered.style, { transform: `translate(${left - 1}px, ${top - 1}px)`, width: `${width + 1}px`, height: `${height + 1}px` });
    });
  }

  private drawAxis(state: State, { from, to }: View, place: Place): void {
    const { width } = this;
    const context = this.axis;
    context.fillStyle = this.scheme.paper;
    context.fillRect(0, 0, width, AXIS);
    this.drawOverview(state);
    const step = this.step(state);
    const ticks = ticksIn(from, to, step);
    context.font = FONT;
    context.textBaseline = "bottom";
    context.fillStyle = this.scheme.ink;
    let end = 0; // of the label before
    formatTicks(ticks, step).forEach((label, i) => {
      const x = place(ticks[i]!);
      const wide = context.measureText(label).width;
      const left = Math.min(Math.max(x - wide / 2, 0), width - wide);
      if (left < end) return;
      context.fillText(label, left, AXIS - 3);
      end = left + wide + 6;
    });
  }
  private step(state: State): number {
    return tickStep(state.view.to - state.view.from, Math.max(this.width / 90, 2));
  }

  private drawOverview(state: State): void {
    const { axis: context, width } = this;
    const { from, to } = state.limits;
    const place = (instant: number) => ((instant - from) / (to - from)) * width;
    context.fillStyle = this.scheme.grid;
    context.fillRect(0, 3, width, OVERVIEW - 6);
    context.fillStyle = this.scheme.focus;
    const left = place(state.view.from);
    const right = Math.max(place(state.view.to), left + 2);
    context.fillRect(left, 2, right - left, OVERVIEW - 4);
    for (const kind of MARKS) {
      context.fillStyle = this.scheme[kind];
      apart(this.marks[kind], 0, this.marks[kind].length, place, (x) => context.fillRect(x - 1, 0, 2, OVERVIEW));
    }
    context.strokeStyle = this.scheme.ink;
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, 0.5, right - left + 1, OVERVIEW - 1);
  }

  private drawGrid({ context, part, width }: Tile, state: State): void {
    const { top, bottom } = this.painted!;
    const place = placeIn(part, width);
    context.fillStyle = this.scheme.grid;
    const { from, to } = beyond(part, width);
    for (const tick of ticksIn(from, to, this.step(state))) context.fillRect(Math.round(place(tick)), top, 1, bottom - top);
  }

  /** All slices: narrow ones in strips, then the others, with their names where there is room. */
  private drawSlices(tile: Tile, rows: readonly Row[], state: State): void {
    const { context } = tile;
    const bands = rows.flatMap((row) => row.bands.map((band) => ({ band, top: row.top + band.top })));
    this.strips.clear();
    const wide = bands.map(({ band }, strip) => this.paintNarrow(band, strip, tile, state));
    this.strips.finish();
    context.imageSmoothingEnabled = false;
    bands.forEach(({ band, top }, strip) => {
      context.globalAlpha = band.faint ? FAINT : 1;
      this.strips.drawn(strip, context, top, TILE, band.height);
      this.drawWide(band, top, wide[strip]!, tile, state);
    });
    context.globalAlpha = 1;
  }

  /** Paints a strip. Returns the positions in the track of what is too wide for it. */
  private paintNarrow(band: Band, strip: number, { part, width }: Tile, state: State): number[] {
    const wide: number[] = [];
    const hidden = packed(this.scheme.hidden);
    visitColumns(band.track, part, Math.round(width * this.resolution), (left, right, first, count, fill) => {
      if (right - left >= NARROW) {
        wide.push(first);
        return;
      }
      const shown = this.isShown(band.kind, band.track.items[first]!, state);
      this.strips.paint(strip, left, right, count > 1 ? fill : 1, shown ? PACKED[band.series[first]!]! : hidden);
    });
    return wide;
  }

  private drawWide(band: Band, top: number, wide: readonly number[], { context, part, width, sticky }: Tile, state: State): void {
    const place = placeIn(part, width);
    let colour = "";
    for (const i of wide) {
      const item = band.track.items[i]!;
      const shown = this.isShown(band.kind, item, state);
      const series = SERIES[band.series[i]!]!;
      const wanted = shown ? series.fill : this.scheme.hidden;
      const start = place(band.track.starts[i]!);
      const right = place(band.track.ends[i]!);
      const left = Math.max(start, -BEYOND);
      if (wanted !== colour) context.fillStyle = colour = wanted;
      context.fillRect(left, top, Math.min(right - 1, width + BEYOND) - left, band.height); // a pixel apart from the next one
      const named = sticky ? Math.max(start, 0) : start;
      if (!shown || !isNamed(band) || right - named < LEAST_NAMED || named < -TILE) continue;
      context.fillStyle = colour = series.text;
      context.fillText(shortened(this.nameOf(band.kind, item), Math.min(right - named, TILE) - 8), named + 4, top + band.height / 2 + 0.5);
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

  /** A bar where a job ended late, with a triangle on it for a miss and a square for a job over its bound: the form says so too. */
  private drawMarks({ context, part, width }: Tile, row: Row): void {
    const { from, to } = beyond(part, width);
    for (const kind of MARKS) {
      const ends = row.marks[kind];
      context.fillStyle = this.scheme[kind];
      apart(ends, lowerBound(ends, from), upperBound(ends, to), placeIn(part, width), (x) => {
        context.fillRect(x - 1.5, row.top + 1, 3, row.height - 2);
        if (kind === "over") return context.fillRect(x - 4, row.top + 1, 8, 8);
        context.beginPath();
        context.moveTo(x - 5, row.top + 1);
        context.lineTo(x + 5, row.top + 1);
        context.lineTo(x, row.top + 9);
        context.fill();
      });
    }
  }

  /** The selected job from its arrival to its finish, and a dashed line at its deadline. */
  private drawExtent({ context, part, width }: Tile, state: State): void {
    const job = this.jobOf(state.selected);
    if (job < 0) return;
    const { jobs } = this.data;
    const { top, bottom } = this.painted!;
    const place = placeIn(part, width);
    const inside = (x: number) => Math.min(Math.max(x, -BEYOND), width + BEYOND);
    const start = place(jobs.arrival[job]!);
    const [left, right] = [inside(start), inside(Math.max(place(extent(jobs, job).to), start + 2))];
    context.globalAlpha = 0.15;
    context.fillStyle = this.scheme.focus;
    context.fillRect(left, top, right - left, bottom - top);
    context.globalAlpha = 1;
    if (Number.isNaN(jobs.deadline[job])) return;
    const x = inside(Math.round(place(jobs.deadline[job]!)) + 0.5);
    context.strokeStyle = this.scheme.miss;
    context.lineWidth = 1;
    context.setLineDash([5, 3]);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, bottom);
    context.stroke();
    context.setLineDash([]);
  }

  /** Frames around what is selected and the slices of its job. */
  private drawSelected({ context, part, width }: Tile, rows: readonly Row[], state: State): void {
    if (state.selected === null) return;
    const job = this.jobOf(state.selected);
    const owner = this.data.slices.job;
    const selected = (kind: Item["kind"], id: number) =>
      job < 0 ? is(state.selected, kind, id) : kind === "job" ? id === job : owner[id] === job;
    context.strokeStyle = this.scheme.ink;
    context.lineWidth = 2;
    visitBoxes(rows, part, placeIn(part, width), width, selected, (box) =>
      context.strokeRect(box.left - 0.5, box.top - 0.5, box.width, box.height + 1));
  }
  private jobOf(item: Item | null): number {
    if (item === null) return -1;
    return item.kind === "job" ? item.id : this.data.slices.job[item.id]!;
  }
}

/** Where an instant stands, in px from the left. */
type Place = (instant: number) => number;

/** What is painted at a time. `sticky`: names of slices that begin before it stand at its left edge. */
interface Tile {
  context: CanvasRenderingContext2D;
  part: View;
  width: number;
  sticky: boolean;
}

function placeIn({ from, to }: View, width: number): Place {
  return (instant) => ((instant - from) / (to - from)) * width;
}
function beyond({ from, to }: View, width: number): View {
  const more = (BEYOND / width) * (to - from);
  return { from: from - more, to: to + more };
}

/** Calls visit with the places of the wanted slices and jobs in a part of the picture, cut off outside of it. */
function visitBoxes(
  rows: readonly Row[], part: View, place: Place, width: number, wanted: (kind: Item["kind"], id: number) => boolean,
  visit: (box: { left: number; top: number; width: number; height: number }) => void,
): void {
  const { from, to } = beyond(part, width);
  for (const row of rows)
    for (const { kind, track, top, height } of row.bands) {
      const stop = upperBound(track.starts, to);
      for (let i = lowerBound(track.ends, from); i < stop; ++i) {
        if (!wanted(kind, track.items[i]!)) continue;
        const left = place(track.starts[i]!);
        const right = Math.max(place(track.ends[i]!), left + 3);
        const [first, last] = [Math.max(left, -BEYOND), Math.min(right, width + BEYOND)];
        visit({ left: first, top: row.top + top, width: last - first, height });
      }
    }
}

/** Fits a canvas to a place, sharp at the resolution of the screen, or of print. */
function fitted(context: CanvasRenderingContext2D, width: number, height: number, resolution: number): void {
  const { canvas } = context;
  canvas.width = Math.round(width * resolution);
  canvas.height = Math.round(height * resolution);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.setTransform(resolution, 0, 0, resolution, 0, 0);
}

function isNamed(band: Band): boolean {
  return !band.faint && band.height >= 12;
}

function is(item: Item | null, kind: Item["kind"], id: number): boolean {
  return item !== null && item.kind === kind && item.id === id;
}

/** Distance of a height from a band. */
function away(band: Band, y: number): number {
  return Math.max(band.top - y, y - band.top - band.height, 0);
}

/** Calls visit with the places of instants, but of one alone in each 2 px. */
function apart(instants: Float64Array, from: number, to: number, place: Place, visit: (x: number) => void): void {
  let last = -Infinity;
  for (let i = from; i < to; ++i) {
    const x = place(instants[i]!);
    if (Math.floor(x / 2) > last) visit(x);
    last = Math.floor(x / 2);
  }
}

function shortened(text: string, width: number): string {
  const letters = Math.floor(width / LETTER);
  return text.length <= letters ? text : `${text.slice(0, Math.max(letters - 1, 0))}\u2026`;
}
