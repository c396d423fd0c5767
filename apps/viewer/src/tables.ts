import type { RunData } from "./data.js";
import { attribution, extent, isMiss, isOverBound, jobName, verdictText } from "./jobs.js";
import { formatDuration, formatInstant } from "./time.js";

const MOST_ROWS = 200;

/** Summary of one task. Numbers that nobody knows are NaN. */
export interface Margin {
  task: number;
  jobs: number;
  misses: number;
  overBound: number;
  worstResponse: number;
}

/** Summaries of all tasks: those of the data, which may cover more jobs than the page has, else counted. */
export function margins(data: RunData): Margin[] {
  const { jobs, tasks } = data;
  const counted = tasks.name.map((_, task) => ({ task, jobs: 0, misses: 0, overBound: 0, worstResponse: NaN }));
  for (let j = 0; j < jobs.count; ++j) {
    const margin = counted[jobs.task[j]!]!;
    margin.jobs += 1;
    margin.misses += isMiss(jobs, j) ? 1 : 0;
    margin.overBound += isOverBound(jobs, j) ? 1 : 0;
    const response = jobs.response[j]!;
    if (!(response <= margin.worstResponse) && !Number.isNaN(response)) margin.worstResponse = response;
  }
  const known = (value: number, otherwise: number) => (Number.isNaN(value) ? otherwise : value);
  return counted.map((margin, task) => ({
    task,
    jobs: known(tasks.jobs[task]!, margin.jobs),
    misses: known(tasks.misses[task]!, margin.misses),
    overBound: known(tasks.overBound[task]!, margin.overBound),
    worstResponse: known(tasks.worstResponse[task]!, margin.worstResponse),
  }));
}

/** Jobs that missed their deadline or were over their bound, by time, of the tasks that the filter lets through. */
export function lateJobsOf(data: RunData, shown: Uint8Array): number[] {
  const { jobs } = data;
  const ends = (job: number) => extent(jobs, job).to;
  return [...jobs.task.keys()].filter((job) => shown[jobs.task[job]!] && (isMiss(jobs, job) || isOverBound(jobs, job)))
    .sort((a, b) => ends(a) - ends(b));
}

/** "2 misses, 13 over their bound". Jobs of both sorts count in both; without bounds there are misses alone. */
export function lateText(data: RunData, late: readonly number[]): string {
  const misses = late.filter((job) => isMiss(data.jobs, job)).length;
  const over = late.filter((job) => isOverBound(data.jobs, job)).length;
  const text = misses === 1 ? "1 miss" : `${misses} misses`;
  return over === 0 && !data.tasks.bound.some((bound) => bound >= 0) ? text : `${text}, ${over} over ${over === 1 ? "its" : "their"} bound`;
}

export function fillMargins(data: RunData, shown: Uint8Array, body: HTMLElement): void {
  const time = (ns: number) => (Number.isNaN(ns) ? "unknown" : formatDuration(ns));
  const { tasks } = data;
  fill(body, margins(data).filter(({ task }) => shown[task]).map(({ task, jobs, misses, overBound, worstResponse }) => {
    const margin = tasks.deadline[task]! - worstResponse;
    const row = tableRow(tasks.name[task]!, [String(jobs), String(misses), String(overBound), time(worstResponse), time(tasks.bound[task]!),
      time(tasks.deadline[task]!), time(margin)]);
    row.classList.toggle("missed", misses > 0 || margin < 0);
    row.classList.toggle("over", overBound > 0);
    return row;
  }));
}

/** A row for each late job, with a button that jumps to it. */
export function fillLateJobs(data: RunData, late: readonly number[], body: HTMLElement, jump: (position: number) => void): void {
  fill(body, late.slice(0, MOST_ROWS).map((job, position) => {
    const row = tableRow("", [formatInstant(extent(data.jobs, job).to), verdictText(data.jobs, job), attribution(data, job)]);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = jobName(data, job);
    button.addEventListener("click", () => jump(position));
    row.firstChild!.appendChild(button);
    return row;
  }));
}

/** How many late jobs the table leaves out. */
export function lateJobsLeftOut(late: readonly number[]): string {
  return late.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${late.length}; n and p reach all of them.` : "";
}

/** A row for each slice of a prediction, as long as there are not too many to read. */
export function fillSlices(data: RunData, body: HTMLElement): boolean {
  const { slices, lanes } = data;
  if (data.jobs.count > 0 || slices.count === 0 || slices.count > MOST_ROWS) return false;
  fill(body, [...slices.lane.keys()].map((s) => tableRow(slices.names[slices.name[s]!]!, [
    `${lanes.device[slices.lane[s]!]} ${lanes.engine[slices.lane[s]!]}`, slices.measured[s] ? data.actual : "predicted",
    formatInstant(slices.start[s]!), formatInstant(slices.end[s]!), formatDuration(slices.end[s]! - slices.start[s]!)])));
  return true;
}

/** Puts rows into a table. Their cells know the names of their columns, which a narrow page shows in front of them. */
function fill(body: HTMLElement, rows: readonly HTMLTableRowElement[]): void {
  const names = [...body.closest("table")!.tHead!.rows[0]!.cells].map((cell) => cell.textContent ?? "");
  for (const row of rows) [...row.cells].forEach((cell, i) => (cell.dataset.name = names[i]));
  body.replaceChildren(...rows);
}

function tableRow(head: string, cells: readonly string[]): HTMLTableRowElement {
  const row = document.createElement("tr");
  const first = row.appendChild(document.createElement("th"));
  first.scope = "row";
  first.textContent = head;
  for (const cell of cells) row.appendChild(document.createElement("td")).textContent = cell;
  return row;
}
