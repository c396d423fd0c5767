// Makes the data of a run for tests of the viewer: a machine of four GPUs, two tasks, planted misses and jobs over their bound; all from a seed.
//
// As a program: node made_run.mjs JOBS SEED FILE.html writes a page with it.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** mulberry32: numbers in [0, 1) that a seed determines. */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const GPUS = 4;
const TASKS = [
  { name: "inspect", period: 25_000_000, deadline: 20_000_000, bound: 9_500_000, bytes: 32_000_000, gpus: GPUS },
  { name: "alarm", period: 100_000_000, deadline: 14_000_000, bound: 3_000_000, bytes: 4_000_000, gpus: 1 },
];
/** Misses are planted at these parts of the run, each with its cause and how late it is. */
export const PLANTED = [
  { part: 0.17, cause: "transfer", late: 1_250_000 },
  { part: 0.52, cause: "blocking", late: 430_000 },
  { part: 0.88, cause: "kernel", late: 4_002_000 },
];
/** Jobs over their bound that meet their deadline, and by how much they are over it. */
export const OVER = [{ part: 0.35, cause: "transfer", over: 700_000 }];

function machine() {
  const gpus = [...Array(GPUS).keys()];
  return {
    name: "four-gpus",
    vertices: {
      name: ["mem0", "cpu0", ...gpus.map((g) => `gpu${g}`), "nvswitch0"],
      kind: ["memory", "cpu", ...gpus.map(() => "gpu"), "switch"],
    },
    // Links 0 and 1 join memory and cpu; of GPU g, 2 + 2 g is the way up, 3 + 2 g the way down.
    links: {
      from: [0, 1, ...gpus.flatMap((g) => [1, 2 + g]), ...gpus.flatMap((g) => [2 + g, 2 + GPUS])],
      to: [1, 0, ...gpus.flatMap((g) => [2 + g, 1]), ...gpus.flatMap((g) => [2 + GPUS, 2 + g])],
      gbps: [200, 150, ...gpus.flatMap(() => [55, 54.5]), ...gpus.flatMap(() => [392, 392])],
    },
    shared: [{ name: "mem0-cpu0-both-ways", gbps: 206.9, links: [0, 1], costs: [1, 1.1322] }],
  };
}

/** Slices of one copy, kernel and copy back on each GPU of a job, predicted and measured; returns the measured end. */
function addWork(slices, job, task, start, slowness, draw) {
  let last = start;
  for (let g = 0; g < task.gpus; ++g) {
    const steps = [
      { lane: 3 * g, name: g, length: task.bytes / 40, route: 2 * g, bytes: task.bytes },
      { lane: 3 * g + 1, name: GPUS + g, length: task.bytes / 10 },
      { lane: 3 * g + 2, name: 2 * GPUS + g, length: task.bytes / 400, route: 2 * g + 1, bytes: task.bytes / 10 },
    ];
    let [planned, real] = [start, start];
    for (const { lane, name, length, route = null, bytes = null } of steps) {
      const took = Math.round(length * (0.98 + 0.03 * draw()) * slowness);
      for (const [measured, at, long] of [[0, planned, Math.round(length)], [1, real, took]]) {
        for (const [key, value] of Object.entries({ lane, name, measured, job, route, bytes })) slices[key].push(value);
        slices.start_ns.push(at);
        slices.length_ns.push(long);
      }
      planned += Math.round(length);
      real += took;
    }
    last = Math.max(last, real);
  }
  return last;
}

/** The data of a run with this many jobs. */
export function madeRun({ jobs: count, seed = 1 }) {
  const draw = random(seed);
  const jobs = { verdicts: ["met", "missed"], causes: ["transfer", "kernel", "blocking"] };
  for (const key of ["task", "index", "arrival_ns", "start_ns", "finish_ns", "deadline_ns", "release_lateness_ns",
    "predicted_ns", "verdict", "cause", "caused_by", "over_by_ns"]) jobs[key] = [];
  const slices = { names: ["image", "compare", "report"].flatMap((name) => [...Array(GPUS).keys()].map((g) => `${name}${g}`)) };
  for (const key of ["lane", "name", "measured", "start_ns", "length_ns", "job", "bytes", "route"]) slices[key] = [];
  const planted = new Map([...PLANTED, ...OVER].map((late) => [5 * Math.floor((late.part * count) / 5) + 1, late]));
  for (let j = 0; j < count; ++j) {
    const [round, within] = [Math.floor(j / 5), j % 5]; // four images, then an alarm
    const t = within < 4 ? 0 : 1;
    const task = TASKS[t];
    const arrival = round * 100_000_000 + (t === 0 ? within * 25_000_000 : 12_000_000);
    const release = Math.round(1000 + 4000 * draw() ** 4);
    const predicted = Math.round(task.bytes / 40) + Math.round(task.bytes / 10) + Math.round(task.bytes / 400);
    const late = planted.get(j);
    const response = late && (late.late ? task.deadline + late.late : task.bound + late.over);
    const start = arrival + release;
    const slowness = late ? (response - release) / predicted : 1;
    const finish = addWork(slices, j, task, start, slowness, late ? () => 2 / 3 : draw);
    const row = {
      task: t, index: t === 0 ? 4 * round + within : round, arrival_ns: arrival, start_ns: start, finish_ns: finish,
      deadline_ns: arrival + task.deadline, release_lateness_ns: release, predicted_ns: predicted, verdict: late?.late ? 1 : 0,
      cause: late ? jobs.causes.indexOf(late.cause) : null, caused_by: late?.cause === "blocking" ? 1 - t : null,
      over_by_ns: late ? finish - arrival - task.bound : null,
    };
    for (const [key, value] of Object.entries(row)) jobs[key].push(value);
  }
  const gpus = [...Array(GPUS).keys()];
  return {
    format: "tutti view", schema_version: 1, written_by: "made_run.mjs", title: `A made run of ${count} jobs`,
    about: [["machine", "four-gpus"], ["policy", "edf"], ["backend", "sim"], ["clock", "virtual"], ["seed", String(seed)]],
    notes: [],
    lanes: { device: gpus.flatMap((g) => Array(3).fill(`gpu${g}`)), engine: gpus.flatMap(() => ["up", "kernels", "down"]) },
    tasks: { name: TASKS.map((t) => t.name), bound_ns: TASKS.map((t) => t.bound), deadline_ns: TASKS.map((t) => t.deadline) },
    jobs, slices, machine: machine(), routes: gpus.flatMap((g) => [[0, 2 + 2 * g], [3 + 2 * g, 1]]),
  };
}

const MARK = '<script type="application/json" id="tutti-data">';

/** page.html with the data in its place, as a program that writes pages does it. */
export function pageWith(data) {
  const page = readFileSync(new URL("../../apps/viewer/page.html", import.meta.url), "utf8");
  const json = typeof data === "string" ? data : JSON.stringify(data).replaceAll("<", "\\u003c");
  const from = page.indexOf(MARK) + MARK.length;
  return page.slice(0, from) + json + page.slice(page.indexOf("</script>", from));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [jobs, seed, file] = process.argv.slice(2);
  if (!file) throw new Error("usage: node made_run.mjs JOBS SEED FILE.html");
  writeFileSync(file, pageWith(madeRun({ jobs: Number(jobs), seed: Number(seed) })));
}
