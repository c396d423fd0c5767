import type { Jobs, RunData, Slices } from "./data.js";
import { formatBytes, formatDuration, formatInstant } from "./time.js";

const MOST_WAITED_FOR = 3; // jobs in a sentence

/** Verdicts of jobs that met no deadline, or have no valid results. */
const MISSES = new Set(["missed", "dropped", "skipped", "aborted", "failed"]);

const CAUSES: Record<string, string> = {
  trigger: "an external release came late",
  release: "the dispatcher was free and saw late that the job was ready",
  gate: "a stream started too late after its gate's instant",
  blocking: "other jobs ran longer than their Wcet while it waited",
  transfer: "a copy was slower than at guaranteed bandwidths",
  kernel: "a kernel took longer than its worst",
  host: "work on the host took longer than declared",
  dispatch: "time went by between the dispatcher and the batches",
  foreign: "a copy was slow while another process used the same GPU",
  unknown: "nothing that was recorded explains it",
};

const VERDICTS: Record<string, string> = {
  dropped: "never ran: its task had no buffers free",
  skipped: "never ran: the job before it was over its budget",
  aborted: "ended early by a policy",
  failed: "ended with an error",
  never_run: "did not start before the run ended",
  met: "met its deadline",
};

export function isMiss(jobs: Jobs, job: number): boolean {
  return MISSES.has(jobs.verdicts[jobs.verdict[job]!]!);
}

/** Whether a job took longer than its bound. A guarantee is broken then, even where the deadline was met. */
export function isOverBound(jobs: Jobs, job: number): boolean {
  return jobs.overBy[job]! > 0;
}

/** Finish minus deadline, in ns: above 0 for a miss. NaN where one is unknown. */
export function lateness(jobs: Jobs, job: number): number {
  return jobs.finish[job]! - jobs.deadline[job]!;
}

/** How much longer a job took than predicted, in percent. NaN where nothing was predicted. */
export function modelError(jobs: Jobs, job: number): number {
  const predicted = jobs.predicted[job]!;
  return predicted > 0 ? ((jobs.finish[job]! - jobs.start[job]! - predicted) / predicted) * 100 : NaN;
}

export function jobName(data: RunData, job: number): string {
  return `${data.tasks.name[data.jobs.task[job]!]} ${data.jobs.index[job]}`;
}

/** When a job begins and ends on the time axis. One that never ran stands at its arrival. */
export function extent(jobs: Jobs, job: number): { from: number; to: number } {
  const from = known(jobs.start[job]!) ?? jobs.arrival[job]!;
  return { from, to: Math.max(known(jobs.finish[job]!) ?? from, from) };
}

/** How the job ended: "missed its deadline by 1.250 ms". */
export function verdictText(jobs: Jobs, job: number): string {
  const verdict = jobs.verdicts[jobs.verdict[job]!]!;
  const late = known(lateness(jobs, job));
  if (verdict === "missed") return late === undefined ? "missed its deadline" : `missed its deadline by ${formatDuration(late)}`;
  if (verdict === "met" && late !== undefined) return `met its deadline, ${formatDuration(-late)} before it`;
  return VERDICTS[verdict] ?? verdict;
}

/** Why the job was late: "transfer: a copy was slower ..., 1.300 ms over its bound"; without a cause, why it waited. */
export function attribution(data: RunData, job: number): string {
  const { jobs } = data;
  const over = known(jobs.overBy[job]!);
  const excess = over === undefined ? "" : `; ${formatDuration(over)} over its bound`;
  const cause = jobs.causes[jobs.cause[job]!];
  if (cause === undefined) return `${waitingText(data, job) ?? "no cause was recorded"}${excess}`;
  const by = jobs.causedBy[job]! < 0 ? "" : `, by jobs of ${data.tasks.name[jobs.causedBy[job]!]}`;
  return `${cause}: ${CAUSES[cause] ?? "this page does not know that cause"}${by}${excess}`;
}

/** From the arrival to the start, in ns. NaN where a job did not start. */
export function waiting(jobs: Jobs, job: number): number {
  return jobs.start[job]! - jobs.arrival[job]!;
}

/** For which jobs it waited: "waiting: 8.000 ms, while inspect 3 ran (7.500 ms)", the longest first. */
function waitingText(data: RunData, job: number): string | undefined {
  const { jobs } = data;
  const ran = [...jobs.start.keys()].filter((other) => other !== job).flatMap((other) => {
    const time = Math.min(jobs.finish[other]!, jobs.start[job]!) - Math.max(jobs.start[other]!, jobs.arrival[job]!);
    return time > 0 ? [{ other, time }] : [];
  }).sort((a, b) => b.time - a.time || a.other - b.other);
  const names = ran.slice(0, MOST_WAITED_FOR).map(({ other, time }) => `${jobName(data, other)} ran (${formatDuration(time)})`);
  if (names.length === 0) return undefined;
  if (ran.length > names.length) names.push(`${ran.length - names.length} more ran`);
  return `waiting: ${formatDuration(waiting(jobs, job))}, while ${names.join(", ")}`;
}

/** What is known of a job: names and values, for reading. */
export function jobNumbers(data: RunData, job: number): [string, string][] {
  const { jobs, tasks } = data;
  const task = jobs.task[job]!;
  const error = known(modelError(jobs, job));
  const late = isMiss(jobs, job) || isOverBound(jobs, job);
  return [
    ["job", jobName(data, job)],
    ["verdict", verdictText(jobs, job)],
    ...(late ? [["attribution", attribution(data, job)] as [string, string]] : []),
    ...rows(formatInstant, ["arrival", jobs.arrival[job]!], ["start", jobs.start[job]!], ["finish", jobs.finish[job]!],
      ["deadline", jobs.deadline[job]!]),
    ...rows(formatDuration, ["waiting", waiting(jobs, job)], ["response", jobs.response[job]!], ["bound", tasks.bound[task]!],
      ["release lateness", jobs.releaseLateness[job]!], ["predicted length", jobs.predicted[job]!]),
    ...(error === undefined ? [] : [["model error", formatPercent(error)] as [string, string]]),
    ...rows(formatInstant, ["seen by the host", jobs.seen[job]!]),
    ...(jobs.reusedInput[job] === 1 ? [["input", "that of an earlier job"] as [string, string]] : []),
    ...(jobs.overwritten[job] === 1 ? [["results", "overwritten before the program had them whole"] as [string, string]] : []),
  ];
}

/** What is known of a slice, and of its job. */
export function sliceNumbers(data: RunData, slice: number): [string, string][] {
  const { slices, lanes } = data;
  const lane = slices.lane[slice]!;
  const length = slices.end[slice]! - slices.start[slice]!;
  const bytes = known(slices.bytes[slice]!);
  const size = bytes === undefined ? "" : `, ${formatBytes(bytes)}${length > 0 ? ` at ${(bytes / length).toFixed(2)} GB/s` : ""}`;
  const job = slices.job[slice]!;
  return [
    ["slice", `${slices.names[slices.name[slice]!]} on ${lanes.device[lane]} ${lanes.engine[lane]}${size}`],
    [slices.measured[slice] ? data.actual : "predicted", sliceTimes(slices, slice)],
    ...(job < 0 ? [] : jobNumbers(data, job)),
  ];
}

function sliceTimes(slices: Slices, slice: number): string {
  const [start, end] = [slices.start[slice]!, slices.end[slice]!];
  return `${formatInstant(start)} to ${formatInstant(end)}, ${formatDuration(end - start)}`;
}

export function formatPercent(percent: number): string {
  const text = percent.toFixed(Math.abs(percent) < 10 ? 2 : 1);
  return `${Number(text) === 0 ? text.replace("-", "") : text} %`;
}

function known(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

function rows(format: (ns: number) => string, ...values: [string, number][]): [string, string][] {
  return values.filter(([, value]) => !Number.isNaN(value)).map(([name, value]) => [name, format(value)]);
}
