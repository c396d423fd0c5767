"""Batches of CPU-GPU transfers and kernels with guaranteed deadlines, from Python.

Is my set schedulable?

    import tutti
    tasks = tutti.TaskSet.load("configs/tasks/wafer-inspection.yaml")
    verdict = tasks.check()
    print(verdict)                             # schedulable
    print(tasks.capacity(parameter="image"))   # the largest image that holds, in bytes

Times are whole nanoseconds and sizes bytes, as in the C interface (tutti.h), which this module calls by ctypes: it needs
no compiler and works with every Python from 3.11 on. Machines, batches and task sets are files, texts of such files, or
dictionaries with the same keys. What is wrong with one raises `tutti.Error`, which has file, line and column.
"""
from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import enum
import gc
import html
import os
import typing
import weakref

from ._batches import BatchResult, BatchRun, Binding, Buffer, PreparedBatch, Runtime
from ._callbacks import DeviceMemory, HostMemory, Launch, _Callbacks, _Interrupts, _Loan
from ._commands import report_of as _report_of
from ._events import Ring, SharedTrigger, Stop, Trigger
from ._interface import (Error, _ChangeRecord, _Handle, _JobRecord, _ON_CHANGE, _ON_END, _ON_JOB, _ON_RECORD, _ON_REMEDY, _ON_STEP,
                         _Program, _RingSlot, _RunOptions, _Slot, _Summary, _TaskRing, _TaskTrigger, _TaskVerdict, _backend, _call,
                         _encoded, _handle_of, _library, _number, _path, _planner, _size, _source, _whole)

__all__ = ["Answer", "Batch", "BatchResult", "BatchRun", "Binding", "Buffer", "Calibrated", "ChangeRecord", "Changes", "DeviceMemory", "Error",
           "HostMemory", "Job", "JobRecord", "Launch", "Learned", "Machine", "PreparedBatch", "Program", "Remedy", "Ring", "RingSlot", "RunRecord",
           "Runtime", "SharedTrigger", "Stop", "TaskSet", "TaskVerdict", "Trigger", "Verdict", "calibrate", "detect", "learn", "planners", "version"]


def version() -> str:
    """Version of the library, such as "0.2.0"."""
    return _library.tutti_version().decode()


def planners() -> list[str]:
    """Names of the planners; the first is the default."""
    found: list[str] = []
    while name := _library.tutti_planner_name(len(found)):
        found.append(name.decode())
    return found


# ---- what is learned


@dataclasses.dataclass(frozen=True)
class Learned:
    """What a trace shows. report: as `tutti learn --json` prints it; its `replay` says how well the model predicts the trace,
    `notes` what was left out, and `what_if` the answer to a question."""

    machine: Machine
    tasks: TaskSet
    report: dict


def learn(trace: str | os.PathLike, out: str | os.PathLike, *, scale: float | None = None, gpus: int | None = None,
          machine: str | os.PathLike | None = None) -> Learned:
    """Makes a machine and a task set of a program's trace, and asks what would still hold.

    trace: an export of Nsight Systems, a trace of PyTorch or Perfetto in JSON, a journal or a trace of tutti. out: folder that
    gets `machine.yaml`, `tasks.yaml` and `report.json`. scale, gpus, machine: what if copies were so many times as large, on so
    many GPUs, on the machine of this file? It runs the program `tutti`, that of TUTTI_PROGRAM or of the PATH.
    """
    report = _report_of("learn", trace, options={"out": out, "scale": scale, "gpus": gpus, "machine": machine})
    return Learned(Machine.load(report["machine_file"]), TaskSet.load(report["tasks_file"]), report)


# ---- what is measured


@dataclasses.dataclass(frozen=True)
class Calibrated:
    """A machine as it was measured. report: as `tutti calibrate --json` prints it; its `errors` say how well the machine
    predicts what was measured."""

    machine: Machine
    report: dict


def detect(out: str | os.PathLike) -> Machine:
    """Writes a first machine file of this host: its GPUs and links, with bandwidths that are guesses until `calibrate`. It
    runs the program `tutti`."""
    _report_of("topology", "detect", options={"out": out})
    return Machine.load(out)


def calibrate(machine: str | os.PathLike, out: str | os.PathLike, *, quick: bool = False, loaded: bool = False,
              backend: str = "cuda", copy: str | None = None, rounds: int | None = None,
              measured: str | os.PathLike | None = None) -> Calibrated:
    """Measures the machine of a file on this host, and writes the file of what was found. It takes minutes.

    quick: in about half of the time, less certain. loaded: also while all cores are busy. backend: "cuda", or "sim" for the
    simulated machine. copy: size of a copy, such as "64 MiB"; rounds: at most so many. measured: a file for what was measured.
    It runs the program `tutti`, that of TUTTI_PROGRAM or of the PATH.
    """
    report = _report_of("calibrate", options={"machine": machine, "out": out, "quick": quick, "loaded": loaded, "backend": backend,
                                              "copy": copy, "rounds": rounds, "measured": measured})
    return Calibrated(Machine.load(out), report)


# ---- what is predicted and promised


class Machine(_Handle):
    """A host: its memories, GPUs and links, with their bandwidths."""

    _free = "machine_free"

    @classmethod
    def load(cls, path: str | os.PathLike) -> Machine:
        """Reads a machine file."""
        return cls._of(_call("machine_load", _path(path)))

    @classmethod
    def make(cls, what: str | collections.abc.Mapping) -> Machine:
        """Of the text of a machine file, or of a dictionary with its keys: `{"machine": {"name": ...}}`."""
        return cls._of(_call("machine_parse", _source(what)))


class _OnMachine(_Handle):
    """What is made for a machine."""

    _kind: str

    @classmethod
    def load(cls, path: str | os.PathLike) -> typing.Self:
        """Reads a file, and the machine that it names."""
        return cls._of(_call(cls._kind + "_load", _path(path)))

    @classmethod
    def make(cls, machine: Machine, what: str | collections.abc.Mapping) -> typing.Self:
        """Of the text of such a file, or of a dictionary with its keys; the machine that it names is not read."""
        return cls._of(_call(cls._kind + "_parse", _handle_of(Machine, machine), _source(what)))


class Batch(_OnMachine):
    """Copies and kernels that start together: `{"streams": [...]}`."""

    _kind = "batch"
    _free = _kind + "_free"

    @property
    def machine(self) -> Machine:
        """Machine that it was made for."""
        return Machine._of(_call("batch_machine", self._handle))

    def predict(self, planner: str | None = None) -> int:
        """How long it usually takes, ns. planner: None for the default."""
        return _number("predict_batch_latency", self._handle, _planner(planner))

    def predict_latest(self, planner: str | None = None) -> int:
        """How long it takes at most, ns, while sizes, times and bandwidths are as declared."""
        return _number("predict_worst_batch_latency", self._handle, _planner(planner))

    def compare(self) -> dict[str, int]:
        """How long it usually takes with each planner, ns."""
        return {name: self.predict(name) for name in planners()}

    def run(self, *, backend: str = "sim", planner: str | None = None, kernels: collections.abc.Mapping[str, typing.Callable] = {},
            device_kernels: collections.abc.Mapping[str, typing.Callable] = {}) -> BatchResult:
        """Runs it once, on scratch buffers. What runs repeatedly, or on memory of the program, is prepared: `Runtime.prepare`."""
        runtime = Runtime.open(self.machine, backend=backend, planner=planner, kernels=kernels, device_kernels=device_kernels)
        return runtime.prepare(self).run()


class TaskSet(_OnMachine):
    """Work that comes again and again, with deadlines: `{"tasks": [...]}`."""

    _kind = "task_set"
    _free = _kind + "_free"

    @property
    def names(self) -> list[str]:
        """Names of the tasks, in the order of the file."""
        return [_library.tutti_task_set_name(self._handle, i).decode() for i in range(_library.tutti_task_set_size(self._handle))]

    def check(self, planner: str | None = None) -> Verdict:
        """Decides whether every deadline is guaranteed. planner: None for that of the file."""
        verdict = _call("check", self._handle, _planner(planner))
        return Verdict._of(verdict, tasks=self, answer=Answer(_library.tutti_verdict_answer(verdict)))

    def compare(self) -> dict[str, Verdict]:
        """The verdict with each planner."""
        return {name: self.check(name) for name in planners()}

    def remedies(self, planner: str | None = None) -> list[Remedy]:
        """The smallest single changes that make a refused set schedulable, at most five; each was checked. None are found where
        it is schedulable, and where no single change helps. It may take seconds."""
        found = []
        on_remedy = _ON_REMEDY(lambda at, _: found.append(tuple(getattr(at[0], name) for name, _ in at[0]._fields_)))
        _call("remedies", self._handle, _planner(planner), on_remedy, None)
        return [Remedy(*(word.decode() for word in words)) for words in found]

    def changes(self) -> Changes:
        """Requests to this set while it runs: its tasks come and go."""
        return Changes._of(_call("change_requests_new", self._handle), tasks=self)

    def profile(self, *, repeats: int = 100, margin: float = 0.1, backend: str = "cuda", seed: int = 0,
                kernels: collections.abc.Mapping[str, typing.Callable] = {},
                device_kernels: collections.abc.Mapping[str, typing.Callable] = {},
                programs: collections.abc.Mapping[str, Program] = {}) -> TaskSet:
        """Measures the kernels on the GPUs of this host: alone, one after the other and beside copies, repeats times each. Returns the
        set with the measured times; margin is the share by which the worst time exceeds the largest one seen. Ctrl-C takes effect behind it."""
        made, run = [], _Run(kernels, device_kernels, programs, backend=backend, seed=seed)
        repeats = _whole("repeats", repeats, 31)
        run.go(lambda options, _: made.append(_call("profile", self._handle, options, repeats, margin)))
        return TaskSet._of(made[0])

    def capacity(self, *, parameter: str | None = None, period: str | None = None, deadline: str | None = None,
                 wcet: str | None = None, planner: str | None = None) -> int | None:
        """How far one number can go with every deadline guaranteed; None where no value holds.

        Give one of: parameter, a size of the file (the largest, in bytes); period or deadline of a task (the smallest,
        ns); wcet that a task declares (the largest, ns).
        """
        asked = [(i, name) for i, name in enumerate((parameter, period, deadline, wcet)) if name is not None]
        if len(asked) != 1:
            raise TypeError("give one of parameter, period, deadline and wcet")
        limit = _number("capacity", self._handle, asked[0][0], _encoded(asked[0][1]), _planner(planner))
        return None if limit < 0 else limit

    def __len__(self) -> int:
        return _library.tutti_task_set_size(self._handle)


@dataclasses.dataclass(frozen=True)
class Remedy:
    """One change that makes a refused set schedulable: "period of 'inspect'", its value, and the one that holds, with units."""

    name: str
    present: str
    remedy: str


class Changes(_Handle):
    """Requests to change a task set while it runs. Any thread may post one; a run answers it behind the job that has the
    machine, or within 50 ms."""

    _free = "change_requests_free"
    tasks: TaskSet

    def post(self, at_ns: int = 0, *, leaves: str | None = None, comes: str | None = None) -> None:
        """A task leaves, one comes, or one takes the place of another, at_ns from the start of the run or soon after."""
        words = [None if name is None else _encoded(name) for name in (leaves, comes)]
        _call("change_requests_post", self._handle, _whole("at_ns", at_ns, 63), *words)

    def run(self, running: collections.abc.Sequence[str], *, until_ns: int, planner: str | None = None, **options) -> RunRecord:
        """Runs the set from these tasks on, as `Verdict.run`, whose options it takes but for jobs. Every deadline is guaranteed at
        every moment: a request that would endanger one is refused. The answers are in `RunRecord.changes`."""
        names = [_encoded(name) for name in running]
        table = (ctypes.c_char_p * max(len(names), 1))(*names)
        of_run = {name: options.pop(name, {}) for name in ("kernels", "device_kernels", "programs")}
        run = _Run(*of_run.values(), until_ns=until_ns, **options)
        return run.go(lambda chosen, summary: _call("run_changing", self._handle, table, len(names), _planner(planner), chosen, summary))


class Answer(enum.Enum):
    """Whether every job meets its deadline."""

    SCHEDULABLE = 0
    NOT_SCHEDULABLE = 1
    UNKNOWN = 2


@dataclasses.dataclass(frozen=True)
class TaskVerdict:
    """Numbers of one task, ns: the bound of a job's own time, the deadline, and the bound of its response, both from its
    arrival; None where no test bounds that."""

    wcet_ns: int
    deadline_ns: int
    worst_response_ns: int | None


_TASK_COLUMNS = ("task", "wcet_ns", "worst_response_ns", "deadline_ns")
_TASK_HEAD = ("task", "a job takes at most, ms", "response at most, ms", "deadline, ms")


class Verdict(_Handle):
    """The answer to whether a task set meets its deadlines. It is true where it does."""

    _free = "verdict_free"
    tasks: TaskSet
    answer: Answer

    def __bool__(self) -> bool:
        return self.answer is Answer.SCHEDULABLE

    @property
    def reasons(self) -> list[str]:
        """Why not, a sentence each."""
        found: list[str] = []
        while reason := _library.tutti_verdict_reason(self._handle, len(found)):
            found.append(reason.decode())
        return found

    @property
    def by_task(self) -> dict[str, TaskVerdict]:
        """Bounds and deadline of each task."""
        return {name: self._of_task(i) for i, name in enumerate(self.tasks.names)}

    def _of_task(self, position: int) -> TaskVerdict:
        found = _TaskVerdict()
        _call("verdict_task", self._handle, position, ctypes.byref(found))
        return TaskVerdict(found.wcet_ns, found.deadline_ns, None if found.worst_response_ns < 0 else found.worst_response_ns)

    @property
    def worst_responses(self) -> dict[str, int | None]:
        """The bound of each task's response from its arrival, ns; None where no test bounds it."""
        return {name: of_task.worst_response_ns for name, of_task in self.by_task.items()}

    def to_dict(self) -> dict:
        """Answer, reasons and tasks, of what JSON has."""
        tasks = [{"task": name, **dataclasses.asdict(of_task)} for name, of_task in self.by_task.items()]
        return {"answer": self.answer.name.lower(), "reasons": self.reasons, "tasks": tasks}

    def to_pandas(self):
        """A pandas.DataFrame with a row for each task. Raises ImportError without pandas."""
        return _frame(self.to_dict()["tasks"], list(_TASK_COLUMNS))

    def _repr_html_(self) -> str:
        reasons = "".join(f"<p>{html.escape(reason)}</p>" for reason in self.reasons)
        rows = [[row["task"], *(_ms(row[name]) for name in _TASK_COLUMNS[1:])] for row in self.to_dict()["tasks"]]
        return f"<p><b>{self.answer.name.lower().replace('_', ' ')}</b></p>{reasons}" + _table(_TASK_HEAD, rows)

    def __repr__(self) -> str:
        lines = [self.answer.name.lower().replace("_", " "), *self.reasons]
        lines += [f"{name}: at most {bound / 1e6:.3f} ms" for name, bound in self.worst_responses.items() if self and bound is not None]
        return "\n  ".join(lines)

    def run(self, *, jobs: int = 0, until_ns: int = 0, backend: str = "sim", seed: int = 0,
            kernels: collections.abc.Mapping[str, typing.Callable] = {},
            device_kernels: collections.abc.Mapping[str, typing.Callable] = {},
            programs: collections.abc.Mapping[str, Program] = {}, triggers: collections.abc.Mapping[str, Trigger] = {},
            journal: str | os.PathLike | None = None, journal_size: int = 0, journal_files: int = 0, stop: Stop | None = None) -> RunRecord:
        """Runs the set as it was admitted.

        jobs, until_ns: how many arrivals, or those before an instant; both 0: one hyperperiod. backend: "sim" or "cuda".
        kernels: by name, called with a `Launch` whose memory is the host's, on the simulated machine.
        device_kernels: by name, called with a `Launch` whose memory is a GPU's and with a cudaStream_t as an integer; what
        it enqueues there is recorded once and launched in each run.
        programs: by task. A kernel or a host step that raises fails its job and no other, but a kernel the run where a GPU
        leads, as a device kernel does; other callbacks that raise end nothing. What was raised is in `RunRecord.exceptions`.
        triggers: by task whose release is external.
        journal: a file into which each job is written; one of journal_size bytes is followed by another, of which the newest
        journal_files are kept (0: never another, and all).
        stop: ends the run early. Ctrl-C does as well: the job under way is the last, and KeyboardInterrupt is raised behind it.
        """
        run = _Run(kernels, device_kernels, programs, jobs=jobs, until_ns=until_ns, backend=backend, seed=seed, triggers=triggers,
                   journal=journal, journal_size=journal_size, journal_files=journal_files, stop=stop)
        run.record.bounds = self.worst_responses
        return run.go(lambda options, summary: _call("run", self._handle, options, summary))


# ---- running


@dataclasses.dataclass(frozen=True)
class JobRecord:
    """How a job ended. Instants are ns from the start of the run; finish_ns is None where it never ran. verdict is met, missed,
    failed, aborted, dropped, skipped or never_run; error says why its results are invalid."""

    task: str
    index: int
    arrival_ns: int
    finish_ns: int | None
    deadline_ns: int
    missed: bool
    verdict: str
    overwritten: bool
    reused_input: bool
    error: str | None = None

    @property
    def response_ns(self) -> int | None:
        """From its arrival to its end."""
        return None if self.finish_ns is None else self.finish_ns - self.arrival_ns

    def to_dict(self) -> dict:
        """Its members, and response_ns."""
        return {**dataclasses.asdict(self), "response_ns": self.response_ns}


@dataclasses.dataclass(frozen=True)
class ChangeRecord:
    """A request to a set that runs, and its answer; only SCHEDULABLE changed something. Instants are ns from the start of the
    run; leaves and comes are names of tasks, or None."""

    at_ns: int
    leaves: str | None
    comes: str | None
    answered_ns: int
    answer: Answer
    reason: str


@dataclasses.dataclass
class RunRecord:
    """A run: its jobs in the order in which they ended, counts of them, and the bounds of responses by task, ns. What callbacks
    raised is in exceptions; changes are answers to `Changes.post`."""

    jobs: list[JobRecord]
    missed: int = 0
    failed: int = 0
    over_bound: int = 0
    exceptions: list[Exception] = dataclasses.field(default_factory=list)
    interrupted: bool = False
    bounds: dict[str, int | None] = dataclasses.field(default_factory=dict)
    changes: list[ChangeRecord] = dataclasses.field(default_factory=list)

    def __repr__(self) -> str:
        raised = f", {len(self.exceptions)} exceptions" if self.exceptions else ""
        return f"{len(self.jobs)} jobs, {self.missed} missed, {self.failed} failed, {self.over_bound} over their bound{raised}"

    @property
    def worst_responses(self) -> dict[str, int]:
        """The longest response of each task, ns."""
        worst: dict[str, int] = {}
        for job in self.jobs:
            if job.response_ns is not None:
                worst[job.task] = max(worst.get(job.task, 0), job.response_ns)
        return worst

    def to_dict(self) -> dict:
        """Its members, of what JSON has, with exceptions in words."""
        return {"jobs": [job.to_dict() for job in self.jobs], "missed": self.missed, "failed": self.failed, "over_bound": self.over_bound,
                "interrupted": self.interrupted, "worst_responses": self.worst_responses, "bounds": dict(self.bounds),
                "exceptions": [repr(fault) for fault in self.exceptions],
                "changes": [{**dataclasses.asdict(change), "answer": change.answer.name.lower()} for change in self.changes]}

    def to_pandas(self):
        """A pandas.DataFrame with a row for each job. Raises ImportError without pandas."""
        return _frame([job.to_dict() for job in self.jobs], [*(field.name for field in dataclasses.fields(JobRecord)), "response_ns"])

    def _repr_html_(self) -> str:
        worst = self.worst_responses
        rows = [[task, sum(job.task == task for job in self.jobs), _ms(worst.get(task)), _ms(self.bounds.get(task))]
                for task in {**self.bounds, **worst}]
        return f"<p>{html.escape(repr(self))}</p>" + _table(("task", "jobs", "longest response, ms", "bound, ms"), rows)


def _frame(rows: list[dict], columns: list[str]):
    try:
        import pandas  # pylint: disable=import-outside-toplevel
    except ImportError as fault:
        raise ImportError("to_pandas needs pandas, which is not installed; install it, or take to_dict") from fault
    return pandas.DataFrame(rows, columns=columns)


def _ms(time_ns: int | None) -> str:
    return "none" if time_ns is None else f"{time_ns / 1e6:.3f}"


def _table(head: collections.abc.Sequence[str], rows: list) -> str:
    """A table of HTML: the first column has names, the others numbers."""
    def line(cells, kind):
        first, *others = (html.escape(str(cell)) for cell in cells)
        return f'<tr><{kind} style="text-align:left">{first}</{kind}>' + "".join(f"<{kind}>{cell}</{kind}>" for cell in others) + "</tr>"
    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"


@dataclasses.dataclass(frozen=True)
class RingSlot:
    """The slot of a ring that a job has: its position, how many were complete up to this one, and whether no job had it before."""

    slot: int
    number: int
    is_new: bool


class Job(_Handle):
    """A job, during a callback of its task."""

    task: str
    index: int
    _writes: bool
    _loan: _Loan

    @property
    def step(self) -> str | None:
        """Name of the host step that it is in."""
        name = _library.tutti_job_step(self._handle)
        return name.decode() if name else None

    @property
    def overwritten(self) -> bool:
        """Whether a later job runs into its buffers: what was read of them is not whole. To be asked behind reading."""
        return bool(_library.tutti_job_overwritten(self._handle))

    def buffer(self, name: str) -> HostMemory:
        """A buffer that its task names and that lies in a memory of the host; "TASK.BUFFER" is one of another task."""
        return _named(_library.tutti_job_buffer, self, name, not self._writes or b"." in _encoded(name))

    def slot(self, name: str) -> RingSlot:
        """The slot that it has for a buffer that lies in a `Ring`."""
        found = _RingSlot()
        _call("job_slot", self._handle, _encoded(name), ctypes.byref(found))
        return RingSlot(found.slot, found.number, bool(found.is_new))


class _KeptBuffers(_Handle):
    """The kept buffers of a task, before its first job."""

    _loan: _Loan

    def __call__(self, name: str) -> HostMemory:
        return _named(_library.tutti_kept_buffer, self, name, False)


@dataclasses.dataclass
class Program:
    """Code of a task; each may be left out. All but on_host_step are called one at a time by a thread beside the one that
    dispatches jobs.

    on_ready(job) fills its input; on_finished(job) reads its results; on_host_step(job, position) does the work of a host
    step; on_missed, on_dropped and on_failed(record) are told of jobs; on_start(buffer) fills kept buffers, with
    buffer(NAME) -> HostMemory.
    memory: for a buffer's name, objects with writable memory of the host (NumPy arrays) that jobs take in turn.
    rings: for a buffer's name, a `Ring` whose newest complete slot a job has.
    """

    on_ready: typing.Callable[[Job], typing.Any] | None = None
    on_finished: typing.Callable[[Job], typing.Any] | None = None
    on_host_step: typing.Callable[[Job, int], typing.Any] | None = None
    on_missed: typing.Callable[[JobRecord], typing.Any] | None = None
    on_dropped: typing.Callable[[JobRecord], typing.Any] | None = None
    on_failed: typing.Callable[[JobRecord], typing.Any] | None = None
    on_start: typing.Callable[[typing.Callable[[str], HostMemory]], typing.Any] | None = None
    memory: collections.abc.Mapping[str, collections.abc.Sequence] = dataclasses.field(default_factory=dict)
    rings: collections.abc.Mapping[str, Ring] = dataclasses.field(default_factory=dict)


def _named(function, of: Job | _KeptBuffers, name: str, read_only: bool) -> HostMemory:
    size = _size()
    address = function(of._handle, _encoded(name), ctypes.byref(size))
    if not address:
        raise Error(f"there is no buffer '{name}' in a memory of the host here")
    return HostMemory(address, size.value, read_only, of._loan)


def _record(record: _JobRecord) -> JobRecord:
    return JobRecord(record.task_name.decode(), record.index, record.arrival_ns, None if record.finish_ns < 0 else record.finish_ns,
                     record.deadline_ns, bool(record.missed), record.verdict.decode(), bool(record.overwritten), bool(record.reused_input),
                     record.error.decode(errors="backslashreplace") if record.error else None)


def _change(change: _ChangeRecord) -> ChangeRecord:
    return ChangeRecord(change.at_ns, change.leaves.decode() or None, change.comes.decode() or None, change.answered_ns, Answer(change.answer),
                        change.reason.decode())


class _Run(_Callbacks):
    """What a run calls, and what must stay while it does."""

    def __init__(self, kernels, device_kernels, programs, *, jobs=0, until_ns=0, backend="sim", seed=0, triggers=(), journal=None,
                 journal_size=0, journal_files=0, stop=None):
        super().__init__(_Loan({}))
        self.record = RunRecord([], exceptions=self.exceptions)
        self._kernels = self._table({**kernels}, {**device_kernels})
        programs, triggers = {**programs}, {**dict(triggers)}
        table = (_Program * max(len(programs), 1))()
        for place, (task, program) in enumerate(programs.items()):
            self._fill(table[place], task, program)
        self._stop = Stop() if stop is None else stop
        fired = (_TaskTrigger * max(len(triggers), 1))(*((_encoded(task), _handle_of(Trigger, trigger)) for task, trigger in triggers.items()))
        self._kept += [table, fired, triggers]
        self._options = _RunOptions(
            backend=_backend(backend), jobs=_whole("jobs", jobs, 64), seed=_whole("seed", seed, 64), kernels=self._kernels._handle,
            programs=table, program_count=len(programs), arrivals_before_ns=_whole("until_ns", until_ns, 63),
            on_job_end=self._calling(_ON_END, self.record.jobs.append, lambda record, _: [_record(record[0])]),
            on_change=self._calling(_ON_CHANGE, self.record.changes.append, lambda change, _: [_change(change[0])]),
            triggers=fired, trigger_count=len(triggers), journal=None if journal is None else _path(journal),
            journal_size=_whole("journal_size", journal_size, 63), journal_files=_whole("journal_files", journal_files, 63),
            stop=_handle_of(Stop, self._stop))

    def _end(self, why):
        super()._end(why)
        self._stop.request()

    def go(self, call) -> RunRecord:
        """call(options, summary) runs the library's function."""
        record, summary, is_kept = self.record, _Summary(), weakref.ref(self._loan)
        try:
            with _Interrupts(lambda: self._end(KeyboardInterrupt())):
                call(ctypes.byref(self._options), ctypes.byref(summary))
        except Error as fault:
            raise self._ending or fault from next(iter(record.exceptions), None)
        finally:
            ending, self._loan.is_over = self._ending, True
            vars(self).clear()  # frames of exceptions hold it
        if ending:
            raise ending
        record.missed, record.failed, record.over_bound = summary.missed, summary.failed, summary.over_bound
        record.interrupted = bool(summary.interrupted)
        if not record.exceptions and is_kept() and (gc.collect(), is_kept())[1]:
            record.exceptions.append(Error("something holds memory of the run, which is gone; keep copies of it, such as bytes(memory.view())"))
        return record

    def _fill(self, into: _Program, task: str, program: Program):
        if not isinstance(program, Program):
            raise TypeError(f"a Program is expected here, not {type(program).__name__}")
        into.task = _encoded(task)

        def job(writes):
            return lambda at, *more: [Job._of(at, task=task, index=_library.tutti_job_index(at), _writes=writes, _loan=self._loan), *more[:-1]]

        def record(_, found, __):
            return [_record(found[0])]

        for name, kind, lend in (("on_ready", _ON_JOB, job(True)), ("on_finished", _ON_JOB, job(False)), ("on_host_step", _ON_STEP, job(True)),
                                 ("on_missed", _ON_RECORD, record), ("on_dropped", _ON_RECORD, record), ("on_failed", _ON_RECORD, record),
                                 ("on_start", _ON_JOB, lambda at, _: [_KeptBuffers._of(at, _loan=self._loan)])):
            if (call := getattr(program, name)) is not None:
                setattr(into, name, self._calling(kind, call, lend))
        slots = []
        for name, memory in {**program.memory}.items():
            if not (views := [memoryview(slot) for slot in memory]):
                raise ValueError(f"no memory is given for buffer '{name}'; give one slot or more, or leave it out")
            if any(view.format[-1:] == "O" for view in views):
                raise TypeError(f"the memory for buffer '{name}' has Python objects, which no job may write; give bytes or numbers")
            slots += [(_encoded(name), (ctypes.c_uint8 * view.nbytes).from_buffer(view)) for view in views]
        array = (_Slot * max(len(slots), 1))(*((name, ctypes.addressof(slot), len(slot)) for name, slot in slots))
        rings = {**program.rings}
        table = (_TaskRing * max(len(rings), 1))(*((_encoded(name), _handle_of(Ring, ring)) for name, ring in rings.items()))
        into.memory, into.memory_count, into.rings, into.ring_count = array, len(slots), table, len(rings)
        self._kept += [array, table]
        self._loan.of_program += [slots, rings]
