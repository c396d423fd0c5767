import { currentScheme } from "./colours.js";
import type { RunData } from "./data.js";
import { navigate, viewAfter, type Wishes } from "./input.js";
import { attribution, extent, jobName, jobNumbers, sliceNumbers, verdictText } from "./jobs.js";
import { Lanes } from "./lanes.js";
import { Load, MachineGraph } from "./machine.js";
import type { Item } from "./rows.js";
import { Series } from "./series.js";
import { Sight } from "./sight.js";
import { startState, type State } from "./state.js";
import { fillLateJobs, fillMargins, fillSlices, lateJobsLeftOut, lateJobsOf, lateText } from "./tables.js";
import { formatInstant } from "./time.js";
import { around, clamped, panned, type View, zoomed } from "./view.js";

const PRINTED_WIDTH = 690; // px, what a sheet of A4 or Letter holds
const PRINTED_HEIGHT = 780; // px, what page.css leaves for lanes on a sheet
const NARROW = 560; // px
const LETTER = 6.8; // px, of names of lanes
const DEVICE_LETTERS = 7; // beside the longest name
const OUT_OF_SIGHT = 60; // px, drawn above and below what is visible of the lanes

/** The parts of the page, one state, and one drawing a frame. */
export class Page {
  private readonly state: State;
  private readonly lanes: Lanes;
  private readonly series: Series;
  private readonly graph: MachineGraph | null;
  private readonly ordered: Int32Array; // jobs by arrival; slices by start where there are none
  private readonly sight = new Sight(() => this.schedule());
  private late: number[]; // jobs that missed, or were over their bound, by time
  private jumped = -1; // position in `late` of the one jumped to last
  private frame = 0;
  private labels = 0; // px, width of the column of names
  private printing = false;
  private visible = { top: 0, bottom: 0 };

  constructor(private data: RunData, private element: (id: string) => HTMLElement) {
    this.state = startState(data);
    const scheme = currentScheme();
    this.lanes = new Lanes(data, element("lanes"), (element("axis") as HTMLCanvasElement).getContext("2d", { alpha: false })!, scheme);
    this.late = lateJobsOf(data, this.state.shown);
    this.ordered = this.itemsByTime();
    this.lanes.arrange(this.state.shown);
    this.fillLabels();
    this.measure();
    this.series = new Series(data, this.state, scheme, this.labels, element("series"), this.labels + this.lanes.width);
    const machine = data.machine;
    this.graph = machine && new MachineGraph(machine, new Load(data, this.lanes.all), element("graph"), element("links"), element("instant"));
    for (const part of [...this.series.pictures, this.element("machine-part")]) this.sight.watch(part);
    this.hideEmptyParts();
    this.fillTables();
    this.listen();
    this.graph?.draw(this.instant());
    this.draw();
  }

  // Drawing

  /** Asks for one drawing in the next frame. */
  private schedule(): void {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.draw());
  }
  private draw(): void {
    this.frame = 0;
    performance.mark("tutti-frame-start");
    this.lanes.draw(this.state, this.visible.top, this.visible.bottom);
    this.series.draw(this.sight);
    if (this.sight.has(this.element("machine-part"))) this.graph?.draw(this.instant());
    // uPlot draws in a microtask; this one comes behind it.
    queueMicrotask(() => performance.measure("tutti-frame", "tutti-frame-start"));
  }
  private show(view: View): void {
    this.state.view = view;
    this.schedule();
  }

  /** The instant of which the graph shows the load: under the pointer, else of what is selected, else in the middle. */
  private instant(): number {
    const { cursor, selected, view } = this.state;
    if (cursor !== null) return cursor;
    if (selected === null) return (view.from + view.to) / 2;
    const { from, to } = this.extentOf(selected);
    return (from + to) / 2;
  }

  /** Reads the sizes of the page, and fits the canvases to them. */
  private measure(): void {
    const scroller = this.element("scroller");
    const whole = this.printing ? PRINTED_WIDTH : scroller.clientWidth;
    const [least, most] = whole < NARROW ? [84, 130] : [132, 260];
    const letters = Math.max(...this.lanes.all.map((row) => row.name.length), 0) + DEVICE_LETTERS;
    this.labels = Math.round(Math.min(Math.max(letters * LETTER, least), most));
    document.documentElement.style.setProperty("--labels", `${this.labels}px`);
    this.lanes.resize(Math.max(whole - this.labels, 50), this.printing ? 2 : window.devicePixelRatio);
    this.scrolled();
  }
  private scrolled(): void {
    const { scrollTop, clientHeight } = this.element("scroller");
    this.visible = this.printing ? { top: 0, bottom: 1e6 }
      : { top: Math.max(scrollTop - OUT_OF_SIGHT, 0), bottom: scrollTop + clientHeight + OUT_OF_SIGHT };
  }
  private resize(): void {
    this.measure();
    this.series.resize(this.labels + this.lanes.width, this.labels);
    this.draw();
  }
  private recolour(): void {
    const scheme = currentScheme();
    this.lanes.recolour(scheme);
    this.series.recolour(scheme);
    this.schedule();
  }
  private print(printing: boolean): void {
    this.printing = this.sight.everything = printing;
    document.documentElement.classList.toggle("printing", printing);
    this.element("cut-off").hidden = this.lanes.height <= PRINTED_HEIGHT;
    this.state.cursor = null;
    this.hideTip();
    this.recolour();
    this.resize();
  }

  // Texts and tables

  private fillLabels(): void {
    let device = "";
    let below = 0;
    this.element("labels").replaceChildren(...this.lanes.rows.map((row) => {
      const label = document.createElement("div");
      label.style.height = `${row.height}px`;
      label.style.marginTop = `${row.top - below}px`;
      below = row.top + row.height;
      label.title = `${row.device} ${row.name}`;
      const owner = label.appendChild(document.createElement("b"));
      owner.textContent = row.device;
      owner.className = row.device === device ? "again" : "";
      label.appendChild(document.createElement("span")).textContent = row.name;
      device = row.device;
      return label;
    }));
  }
  private hideEmptyParts(): void {
    const { jobs, slices } = this.data;
    this.element("series-part").hidden = this.series.surfaces.length === 0;
    this.element("margins-part").hidden = this.data.tasks.name.length === 0;
    this.element("machine-part").hidden = this.graph === null;
    this.element("slices-part").hidden = !fillSlices(this.data, this.element("slices"));
    for (const id of ["filter-part", "late-part", "previous-late", "next-late", "late-count"]) this.element(id).hidden = jobs.count === 0;
    this.element("pairs").hidden = !slices.measured.includes(1) || !slices.measured.includes(0);
    this.element("actual").textContent = this.data.actual;
    this.element("marks").hidden = jobs.count === 0;
    this.element("task-names").replaceChildren(...this.data.tasks.name.map((name) => new Option(name, name)));
    if (jobs.count + slices.count === 0) this.say("The data has no jobs and no slices.");
  }
  private fillTables(): void {
    const { shown } = this.state;
    fillMargins(this.data, shown, this.element("margins"));
    fillLateJobs(this.data, this.late, this.element("late"), (position) => this.jump(position));
    this.element("late-table").hidden = this.late.length === 0;
    this.element("no-late").hidden = this.late.length > 0;
    this.element("late-left").textContent = lateJobsLeftOut(this.late);
    this.element("late-count").textContent = lateText(this.data, this.late);
    for (const id of ["previous-late", "next-late"]) (this.element(id) as HTMLButtonElement).disabled = this.late.length === 0;
  }
  private filter(text: string): void {
    const wanted = text.trim().toLowerCase();
    this.data.tasks.name.forEach((name, task) => {
      this.state.shown[task] = name.toLowerCase().includes(wanted) ? 1 : 0;
    });
    this.late = lateJobsOf(this.data, this.state.shown);
    this.jumped = -1;
    this.lanes.arrange(this.state.shown);
    this.fillLabels();
    this.fillTables();
    this.resize();
    this.say(`${this.state.shown.reduce((a, b) => a + b, 0)} of ${this.state.shown.length} tasks shown, ${lateText(this.data, this.late)}.`);
  }
  private say(sentence: string): void {
    this.element("status").textContent = sentence;
  }
  private numbersOf(item: Item): [string, string][] {
    return item.kind === "job" ? jobNumbers(this.data, item.id) : sliceNumbers(this.data, item.id);
  }

  // Selecting and jumping

  private extentOf(item: Item): { from: number; to: number } {
    const { jobs, slices } = this.data;
    if (item.kind === "slice") return { from: slices.start[item.id]!, to: slices.end[item.id]! };
    return { from: jobs.arrival[item.id]!, to: extent(jobs, item.id).to };
  }
  private itemsByTime(): Int32Array {
    const { jobs, slices } = this.data;
    const time = jobs.count > 0 ? jobs.arrival : slices.start;
    return Int32Array.from(time.keys()).sort((a, b) => time[a]! - time[b]! || a - b);
  }
  private select(item: Item | null): void {
    this.state.selected = item;
    const list = this.element("numbers");
    list.replaceChildren(...(item ? this.numbersOf(item) : []).map(([name, value]) => {
      const pair = document.createElement("div");
      pair.appendChild(document.createElement("dt")).textContent = name;
      pair.appendChild(document.createElement("dd")).textContent = value;
      pair.classList.toggle("wide", name === "attribution" || name === "verdict" || name === "slice");
      return pair;
    }));
    this.element("nothing-selected").hidden = item !== null;
    this.schedule();
  }

  /** Shows a late job in the middle third of the lanes, and says which it is and why it was late. */
  private jump(position: number): void {
    const { late } = this;
    if (late.length === 0) return this.say("No job missed or was over its bound.");
    this.jumped = (position + late.length) % late.length;
    const job = late[this.jumped]!;
    const { from, to } = this.extentOf({ kind: "job", id: job });
    const deadline = this.data.jobs.deadline[job]!;
    this.state.view = around(from, deadline > to ? deadline : to, 1e3, this.state.limits);
    this.reveal(job);
    this.state.cursor = null;
    this.select({ kind: "job", id: job });
    this.say(`Late job ${this.jumped + 1} of ${late.length}: ${jobName(this.data, job)} at ${formatInstant(to)} ` +
      `${verdictText(this.data.jobs, job)}. Attribution: ${attribution(this.data, job)}.`);
  }
  /** Scrolls the lanes as far as the row of a job needs to be seen. */
  private reveal(job: number): void {
    const row = this.lanes.rows.find((one) => one.task === this.data.jobs.task[job]);
    const scroller = this.element("scroller");
    if (!row || (row.top >= scroller.scrollTop && row.top + row.height <= scroller.scrollTop + scroller.clientHeight)) return;
    scroller.scrollTop = row.top - 20;
    this.scrolled();
  }
  /** The next late job behind the one jumped to last, as long as that is in view; else behind the middle of the view. */
  private jumpBy(step: number): void {
    const { view, limits } = this.state;
    const ends = this.late.map((job) => extent(this.data.jobs, job).to);
    const last = ends[this.jumped];
    const whole = view.to - view.from >= 0.999 * (limits.to - limits.from);
    if (last !== undefined && last >= view.from && last <= view.to && !whole) return this.jump(this.jumped + step);
    const behind = whole ? 0 : ends.findIndex((end) => end >= (view.from + view.to) / 2);
    this.jump(step > 0 ? Math.max(behind, 0) : behind - 1);
  }
  /** Selects the next job, or slice, that the filter lets through. */
  private step(by: number): void {
    const { jobs } = this.data;
    const kind: Item["kind"] = jobs.count > 0 ? "job" : "slice";
    const { selected } = this.state;
    const current = selected === null ? -1 : selected.kind === "slice" && kind === "job" ? this.data.slices.job[selected.id]! : selected.id;
    let at = this.ordered.indexOf(current);
    if (at < 0 && by < 0) at = this.ordered.length;
    do at += by;
    while (kind === "job" && at >= 0 && at < jobs.count && !this.state.shown[jobs.task[this.ordered[at]!]!]);
    if (at < 0 || at >= this.ordered.length) return this.say(by > 0 ? "That is the last one." : "That is the first one.");
    const item: Item = { kind, id: this.ordered[at]! };
    const { from, to } = this.extentOf(item);
    const { view, limits } = this.state;
    if (from < view.from || to > view.to) this.state.view = panned(view, (from + to - view.from - view.to) / 2, limits);
    if (kind === "job") this.reveal(item.id);
    this.select(item);
    const said = new Set(["job", "verdict", "attribution", "slice", "predicted", this.data.actual]);
    this.say(this.numbersOf(item).filter(([name]) => said.has(name)).map(([, value]) => value).join(", "));
  }

  // Pointers and keys

  private listen(): void {
    const scroller = this.element("scroller");
    const lanes = this.element("lanes");
    navigate(lanes, this.state, this.wishes(lanes, (x, y) => this.lanes.itemAt(x, y, this.state)));
    for (const surface of this.series.surfaces)
      navigate(surface, this.state, this.wishes(surface, (x, y) => {
        const job = this.series.jobAt(surface, x, y);
        return job < 0 ? null : { kind: "job", id: job };
      }));
    this.listenToOverview();
    const middle = () => this.state.cursor ?? (this.state.view.from + this.state.view.to) / 2;
    const buttons: Record<string, () => void> = {
      "previous-late": () => this.jumpBy(-1),
      "next-late": () => this.jumpBy(1),
      "zoom-in": () => this.show(zoomed(this.state.view, 0.6, middle(), this.state.limits)),
      "zoom-out": () => this.show(zoomed(this.state.view, 1 / 0.6, middle(), this.state.limits)),
      "whole-run": () => this.show(this.state.limits),
    };
    for (const [id, press] of Object.entries(buttons)) this.element(id).addEventListener("click", press);
    const filter = this.element("filter") as HTMLInputElement;
    filter.addEventListener("input", () => this.filter(filter.value));
    document.addEventListener("keydown", (event) => this.press(event));
    scroller.addEventListener("scroll", () => {
      this.scrolled();
      this.schedule();
    }, { passive: true });
    new ResizeObserver(() => !this.printing && this.resize()).observe(scroller);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }
  private wishes(surface: HTMLElement, itemAt: (x: number, y: number) => Item | null): Wishes {
    return {
      show: (view) => this.show(view),
      hover: (x, y, event) => {
        this.state.cursor = this.lanes.instantAt(x, this.state);
        this.state.hovered = event.buttons === 0 || event.pointerType !== "mouse" ? itemAt(x, y) : null;
        surface.style.cursor = this.state.hovered ? "pointer" : "grab";
        this.tip(event);
        this.schedule();
      },
      leave: () => {
        this.state.cursor = null;
        this.hideTip();
        this.schedule();
      },
      select: (x, y) => this.select(itemAt(x, y)),
    };
  }
  private listenToOverview(): void {
    const axis = this.element("axis");
    const go = (event: PointerEvent) => {
      const { view, limits } = this.state;
      const at = limits.from + (event.offsetX / axis.clientWidth) * (limits.to - limits.from);
      const half = (view.to - view.from) / 2;
      this.show(clamped({ from: at - half, to: at + half }, limits));
    };
    axis.addEventListener("pointerdown", (event) => {
      axis.setPointerCapture(event.pointerId);
      go(event);
    });
    axis.addEventListener("pointermove", (event) => event.buttons !== 0 && go(event));
  }
  private press(event: KeyboardEvent): void {
    const target = event.target as Element;
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
    const onLanes = target.id === "scroller";
    const view = viewAfter(event.key, event.shiftKey, onLanes, this.state);
    const keys: Record<string, () => void> = {
      n: () => this.jumpBy(1), p: () => this.jumpBy(-1), j: () => this.step(1), k: () => this.step(-1),
      Escape: () => this.select(null),
    };
    if (view) {
      this.hideTip();
      this.show(view);
    } else if (keys[event.key]) keys[event.key]!();
    else return;
    event.preventDefault();
  }

  private hideTip(): void {
    this.state.hovered = null;
    this.element("tip").hidden = true;
  }
  /** The numbers of what is under the pointer, beside it. */
  private tip(event: PointerEvent): void {
    const tip = this.element("tip");
    const item = this.state.hovered;
    tip.hidden = item === null;
    if (item === null) return;
    tip.textContent = this.numbersOf(item).map(([name, value]) => `${name}: ${value}`).join("\n");
    const right = event.clientX > window.innerWidth / 2;
    tip.style.left = right ? "auto" : `${event.clientX + 14}px`;
    tip.style.right = right ? `${document.documentElement.clientWidth - event.clientX + 14}px` : "auto";
    const below = event.clientY < window.innerHeight / 2;
    tip.style.top = below ? `${event.clientY + 14}px` : "auto";
    tip.style.bottom = below ? "auto" : `${window.innerHeight - event.clientY + 14}px`;
  }
}
