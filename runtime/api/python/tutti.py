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
import json
import operator
import os
import pathlib
import re
import signal
import typing
import weakref

__all__ = ["Answer", "Batch", "DeviceMemory", "Error", "HostMemory", "Job", "JobRecord", "Launch", "Machine", "Program", "RunRecord",
           "TaskSet", "Verdict", "version"]

_SERIES = "0.2"  # versions of one major and minor number have one binary interface


class Error(Exception):
    """A file, an argument, the machine or a kernel that failed, with the library's sentence.

    kind: "input", "machine" or "kernel". file, line and column are None where the sentence names no place.
    """

    KINDS = {2: "input", 3: "machine", 4: "kernel"}

    def __init__(self, sentence: str, status: int = 2):
        super().__init__(sentence)
        self.kind = self.KINDS.get(status, "input")
        place = re.match(r"(.*?):(\d+):(\d+): ", sentence)
        self.file, self.line, self.column = (place[1], int(place[2]), int(place[3])) if place else (None, None, None)


# ---- the C interface

_c, _text, _i64, _size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_size_t


class _Launch(ctypes.Structure):
    _fields_ = [("input", _c), ("input_size", _size), ("output", _c), ("output_size", _size), ("parameters", _c),
                ("parameters_size", _size), ("buffers", _c)]


class _JobRecord(ctypes.Structure):
    _fields_ = [("task", _size), ("index", ctypes.c_uint64), ("arrival_ns", _i64), ("finish_ns", _i64),
                ("deadline_ns", _i64), ("missed", ctypes.c_int), ("verdict", _text), ("task_name", _text),
                ("overwritten", ctypes.c_int), ("reused_input", ctypes.c_int), ("seen_ns", _i64)]


class _Slot(ctypes.Structure):
    _fields_ = [("buffer", _text), ("data", _c), ("size", _size)]


_HOST_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch), _c)
_DEVICE_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch), _c, _c)
_ON_JOB = ctypes.CFUNCTYPE(None, _c, _c)
_ON_STEP = ctypes.CFUNCTYPE(ctypes.c_int, _c, _size, _c)
_ON_RECORD = ctypes.CFUNCTYPE(None, _c, ctypes.POINTER(_JobRecord), _c)
_ON_END = ctypes.CFUNCTYPE(None, ctypes.POINTER(_JobRecord), _c)


class _Program(ctypes.Structure):
    _fields_ = [("task", _text), ("on_ready", _ON_JOB), ("on_finished", _ON_JOB), ("user", _c), ("on_host_step", _ON_STEP),
                ("on_missed", _ON_RECORD), ("on_dropped", _ON_RECORD), ("on_failed", _ON_RECORD), ("on_start", _ON_JOB),
                ("memory", ctypes.POINTER(_Slot)), ("memory_count", _size), ("rings", _c), ("ring_count", _size)]


class _RunOptions(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_int), ("jobs", ctypes.c_uint64), ("seed", ctypes.c_uint64), ("kernels", _c),
                ("programs", ctypes.POINTER(_Program)), ("program_count", _size), ("on_job_end", _ON_END), ("user", _c),
                ("arrivals_before_ns", _i64), ("on_change", _c), ("triggers", _c), ("trigger_count", _size),
                ("journal", _text), ("journal_size", _i64), ("journal_files", _size)]


class _Summary(ctypes.Structure):
    _fields_ = [("jobs", ctypes.c_uint64), ("missed", ctypes.c_uint64), ("failed", ctypes.c_uint64),
                ("over_bound", ctypes.c_uint64)]


_FUNCTIONS = {
    "version": (_text,), "last_error": (_text,),
    "machine_load": (_c, _text), "machine_parse": (_c, _text), "machine_free": (None, _c),
    "batch_load": (_c, _text), "batch_parse": (_c, _c, _text), "batch_machine": (_c, _c), "batch_free": (None, _c),
    "predict_batch_latency": (ctypes.c_int, _c, _text, ctypes.POINTER(_i64)),
    "predict_worst_batch_latency": (ctypes.c_int, _c, _text, ctypes.POINTER(_i64)),
    "task_set_load": (_c, _text), "task_set_parse": (_c, _c, _text), "task_set_size": (_size, _c),
    "task_set_name": (_text, _c, _size), "task_set_free": (None, _c),
    "check": (_c, _c, _text), "verdict_answer": (ctypes.c_int, _c), "verdict_reason": (_text, _c, _size),
    "verdict_worst_response": (ctypes.c_int, _c, _size, ctypes.POINTER(_i64)), "verdict_free": (None, _c),
    "capacity": (ctypes.c_int, _c, ctypes.c_int, _text, _text, ctypes.POINTER(_i64)),
    "kernels_new": (_c,), "kernels_free": (None, _c),
    "kernels_add": (ctypes.c_int, _c, _text, _HOST_KERNEL, _DEVICE_KERNEL, _c),
    "launch_read": (_c, ctypes.POINTER(_Launch), _size, ctypes.POINTER(_size)),
    "launch_written": (_c, ctypes.POINTER(_Launch), _size, ctypes.POINTER(_size)),
    "job_task": (_size, _c), "job_index": (ctypes.c_uint64, _c), "job_step": (_text, _c),
    "job_overwritten": (ctypes.c_int, _c), "job_buffer": (_c, _c, _text, ctypes.POINTER(_size)),
    "kept_buffer": (_c, _c, _text, ctypes.POINTER(_size)),
    "run": (ctypes.c_int, _c, ctypes.POINTER(_RunOptions), ctypes.POINTER(_Summary)),
}


def _load_library():
    """The library beside this module's prefix, then where the loader looks; TUTTI_LIBRARY names another."""
    name, here = f"libtutti.so.{_SERIES}", pathlib.Path(__file__).resolve()
    beside = [folder / name for parent in here.parents[:6] for folder in sorted((parent / "lib").glob("*-linux-gnu*")) + [parent / "lib"]
              if (folder / name).exists()]
    asked = os.environ.get("TUTTI_LIBRARY")
    for path in [asked] if asked else [*map(str, beside[:1]), name]:
        try:
            library = ctypes.CDLL(path)
            break
        except OSError as fault:
            why = fault
    else:
        raise ImportError(f"{why}; install the library of tutti {_SERIES}, or name its file in TUTTI_LIBRARY")
    if not hasattr(library, "tutti_version"):
        raise ImportError(f"{path} is no library of tutti; name that of tutti {_SERIES} in TUTTI_LIBRARY")
    library.tutti_version.restype = _text
    found = library.tutti_version().decode()
    if not found.startswith(_SERIES + "."):
        raise ImportError(f"{path} is tutti {found}, and this module is for {_SERIES}; install both of one version")
    for function, (result, *arguments) in _FUNCTIONS.items():
        of_name = getattr(library, "tutti_" + function)
        of_name.restype, of_name.argtypes = result, arguments
    return library


_library = _load_library()


def version() -> str:
    """Version of the library, such as "0.2.0"."""
    return _library.tutti_version().decode()


def _call(function, *arguments):
    """Calls a function that returns a handle or a status; raises what it says where it fails."""
    result = getattr(_library, "tutti_" + function)(*arguments)
    is_status = _FUNCTIONS[function][0] is ctypes.c_int
    if (is_status and result != 0) or (not is_status and not result):
        raise Error(_library.tutti_last_error().decode(errors="backslashreplace"), result if is_status else 2)
    return result


def _number(function, *arguments) -> int:
    result = _i64()
    _call(function, *arguments, ctypes.byref(result))
    return result.value


def _to_its_end(text: bytes) -> bytes:
    """The library reads to the first 0."""
    if b"\0" in text:
        raise ValueError(f"there is a 0 character in {text!r:.80}; leave it out")
    return text


def _encoded(text: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"text is expected here, not {type(text).__name__}")
    return _to_its_end(text.encode())


def _path(path: str | os.PathLike) -> bytes:
    return _to_its_end(os.fsencode(path))


def _planner(name: str | None) -> bytes | None:
    return None if name is None else _encoded(name)


def _source(what: str | collections.abc.Mapping) -> bytes:
    """The text of a file; a dictionary is one, since YAML takes JSON."""
    return _encoded(what if isinstance(what, str) else json.dumps({"version": 1, **what}, allow_nan=False, ensure_ascii=False))


def _whole(name: str, number: int, bits: int) -> int:
    """A number that fits: ctypes would cut another."""
    number = operator.index(number)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} is a whole number from 0 to 2**{bits} - 1")
    return number


class _Handle:
    """What the library has made, or lends until a callback returns. There is one for each, and no copy."""

    _free: str | None = None  # function of the library; none: it is lent
    _at: int | None = None

    def __init__(self, *_, **__):
        raise TypeError(f"a {type(self).__name__} comes from a function of this module, such as make or load")

    @classmethod
    def _of(cls, at: int, **more):
        made = cls.__new__(cls)
        vars(made).update(more, _at=at)
        return made

    @property
    def _handle(self) -> int:
        if self._at is None:
            raise Error("this was lent to a callback that is over; copy what you keep of it there")
        return self._at

    def __reduce__(self):
        raise TypeError(f"a {type(self).__name__} is neither copied nor pickled")

    def __del__(self):
        at, self._at = self._at, None
        if self._free and at:
            getattr(_library, "tutti_" + self._free)(at)


def _handle_of(kind: type[_Handle], thing) -> int:
    if not isinstance(thing, kind):
        raise TypeError(f"a {kind.__name__} is expected here, not {type(thing).__name__}")
    return thing._handle


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


class Answer(enum.Enum):
    """Whether every job meets its deadline."""

    SCHEDULABLE = 0
    NOT_SCHEDULABLE = 1
    UNKNOWN = 2


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
        found = []
        while reason := _library.tutti_verdict_reason(self._handle, len(found)):
            found.append(reason.decode())
        return found

    @property
    def worst_responses(self) -> dict[str, int | None]:
        """The bound of each task's response from its arrival, ns; None where no test bounds it."""
        bounds = (_number("verdict_worst_response", self._handle, i) for i in range(len(self.tasks)))
        return {name: None if bound < 0 else bound for name, bound in zip(self.tasks.names, bounds)}

    def __repr__(self) -> str:
        lines = [self.answer.name.lower().replace("_", " "), *self.reasons]
        lines += [f"{name}: at most {bound / 1e6:.3f} ms" for name, bound in self.worst_responses.items() if self and bound is not None]
        return "\n  ".join(lines)

    def run(self, *, jobs: int = 0, until_ns: int = 0, backend: str = "sim", seed: int = 0,
            kernels: collections.abc.Mapping[str, typing.Callable] = {},
            device_kernels: collections.abc.Mapping[str, typing.Callable] = {},
            programs: collections.abc.Mapping[str, Program] = {}, journal: str | os.PathLike | None = None) -> RunRecord:
        """Runs the set as it was admitted.

        jobs, until_ns: how many arrivals, or those before an instant; both 0: one hyperperiod. backend: "sim" or "cuda".
        kernels: by name, called with a `Launch` whose memory is the host's, on the simulated machine.
        device_kernels: by name, called with a `Launch` whose memory is a GPU's and with a cudaStream_t as an integer; what
        it enqueues there is recorded once and launched in each run.
        programs: by task. A kernel or a host step that raises fails its job and no other, but a kernel the run where a GPU
        leads, as a device kernel does; other callbacks that raise end nothing. What was raised is in `RunRecord.exceptions`.
        KeyboardInterrupt and SystemExit are raised behind the run, which calls nothing of yours until it ends.
        """
        return _Run(self, kernels, device_kernels, programs).go(jobs, until_ns, backend, seed, journal)


# ---- running


class _Loan:
    """That memory of a run is there. What has the memory holds it, so whether something does is seen behind the run."""

    is_over = False

    def __reduce__(self):
        raise TypeError("memory of a run is neither copied so nor pickled; keep its bytes, such as bytes(memory.view())")


@dataclasses.dataclass(frozen=True)
class HostMemory:
    """Memory of the host, for NumPy (`numpy.asarray`) and whatever else takes the array interface. Nothing is copied: what
    a callback keeps of it, other jobs write, and behind the run it is gone. Keep copies, such as `bytes(memory.view())`."""

    address: int
    size: int
    read_only: bool
    _loan: _Loan = dataclasses.field(default_factory=_Loan, repr=False, compare=False)

    @property
    def __array_interface__(self) -> dict:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self._where(), self.read_only), "version": 3}

    def view(self) -> memoryview:
        """The same memory as a memoryview of bytes."""
        array = (ctypes.c_uint8 * self.size).from_address(self._where())
        array.memory = self
        bytes_ = memoryview(array).cast("B") if self.size else memoryview(b"")
        return bytes_.toreadonly() if self.read_only else bytes_

    def _where(self) -> int:
        if self._loan.is_over:
            raise Error("the run is over, and this memory of it is gone; copy what you keep of it in the callback")
        return self.address


@dataclasses.dataclass(frozen=True)
class DeviceMemory:
    """Memory of a GPU, for CuPy (`cupy.asarray`), PyTorch (`torch.as_tensor`), Numba and others. Nothing is copied, and
    nobody need wait: what is enqueued on the stream of the launch is in order."""

    address: int
    size: int
    read_only: bool

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self.address, False), "version": 3, "stream": None}


@dataclasses.dataclass(frozen=True)
class Launch:
    """Memory and parameters of one launch of a kernel: what it reads and writes, as the task set names them. In a batch
    without names it reads where its transfer ended, and writes its output."""

    reads: list
    writes: list
    parameters: bytes


@dataclasses.dataclass(frozen=True)
class JobRecord:
    """How a job ended. Instants are ns from the start of the run; finish_ns is None where it never ran."""

    task: str
    index: int
    arrival_ns: int
    finish_ns: int | None
    deadline_ns: int
    missed: bool
    verdict: str
    overwritten: bool
    reused_input: bool

    @property
    def response_ns(self) -> int | None:
        """From its arrival to its end."""
        return None if self.finish_ns is None else self.finish_ns - self.arrival_ns


@dataclasses.dataclass
class RunRecord:
    """A run: its jobs in the order in which they ended, and counts of them."""

    jobs: list[JobRecord]
    missed: int = 0
    failed: int = 0
    over_bound: int = 0
    exceptions: list[Exception] = dataclasses.field(default_factory=list)

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


class Job(_Handle):
    """A job, during a callback of its task."""

    task: str
    index: int

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


class _KeptBuffers(_Handle):
    """The kept buffers of a task, before its first job."""

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
    """

    on_ready: typing.Callable[[Job], typing.Any] | None = None
    on_finished: typing.Callable[[Job], typing.Any] | None = None
    on_host_step: typing.Callable[[Job, int], typing.Any] | None = None
    on_missed: typing.Callable[[JobRecord], typing.Any] | None = None
    on_dropped: typing.Callable[[JobRecord], typing.Any] | None = None
    on_failed: typing.Callable[[JobRecord], typing.Any] | None = None
    on_start: typing.Callable[[typing.Callable[[str], HostMemory]], typing.Any] | None = None
    memory: collections.abc.Mapping[str, collections.abc.Sequence] = dataclasses.field(default_factory=dict)


def _named(function, of: Job | _KeptBuffers, name: str, read_only: bool) -> HostMemory:
    size = _size()
    address = function(of._handle, _encoded(name), ctypes.byref(size))
    if not address:
        raise Error(f"there is no buffer '{name}' in a memory of the host here")
    return HostMemory(address, size.value, read_only, of._loan)


def _record(record: _JobRecord) -> JobRecord:
    return JobRecord(record.task_name.decode(), record.index, record.arrival_ns, None if record.finish_ns < 0 else record.finish_ns,
                     record.deadline_ns, bool(record.missed), record.verdict.decode(), bool(record.overwritten), bool(record.reused_input))


class _Kernels(_Handle):
    """A table of kernels."""

    _free = "kernels_free"


class _Run:
    """What a run calls, and what must stay while it does."""

    def __init__(self, verdict: Verdict, kernels, device_kernels, programs):
        self._verdict, self._kept, self._loan, self._ending, self.record = verdict, [], _Loan(), None, RunRecord([])
        self._kernels = self._table({**kernels}, {**device_kernels})
        programs = {**programs}
        self._count, self._programs = len(programs), (_Program * max(len(programs), 1))()
        for place, (task, program) in enumerate(programs.items()):
            self._fill(self._programs[place], task, program)

    def go(self, jobs, until_ns, backend, seed, journal) -> RunRecord:
        backends = {"sim": 0, "cuda": 1}
        if backend not in backends:
            raise Error(f"there is no backend '{backend}'; give one of {', '.join(backends)}")
        on_end = self._calling(_ON_END, self.record.jobs.append, lambda record, _: [_record(record[0])])
        options = _RunOptions(backend=backends[backend], jobs=_whole("jobs", jobs, 64), seed=_whole("seed", seed, 64),
                              kernels=self._kernels._handle, programs=self._programs, program_count=self._count,
                              on_job_end=on_end, arrivals_before_ns=_whole("until_ns", until_ns, 63),
                              journal=None if journal is None else _path(journal))
        record, summary, is_kept, usual = self.record, _Summary(), weakref.ref(self._loan), self._hold_interrupts()
        try:
            _call("run", self._verdict._handle, ctypes.byref(options), ctypes.byref(summary))
        except Error as fault:
            raise self._ending or fault from next(iter(record.exceptions), None)
        finally:
            if usual:
                signal.signal(signal.SIGINT, usual)
            ending, self._loan.is_over = self._ending, True
            vars(self).clear()  # frames of exceptions hold it
        if ending:
            raise ending
        record.missed, record.failed, record.over_bound = summary.missed, summary.failed, summary.over_bound
        if not record.exceptions and is_kept() and (gc.collect(), is_kept())[1]:
            record.exceptions.append(Error("something holds memory of the run, which is gone; keep copies of it, such as bytes(memory.view())"))
        return record

    def _table(self, kernels, device_kernels) -> _Kernels:
        table = _Kernels._of(_call("kernels_new"))
        for name in {**kernels, **device_kernels}:
            host, device = _HOST_KERNEL(), _DEVICE_KERNEL()
            if name in kernels:
                host = self._calling(_HOST_KERNEL, kernels[name], lambda launch, _: [_launch(launch, lambda *of: HostMemory(*of, self._loan))])
            if name in device_kernels:
                device = self._calling(_DEVICE_KERNEL, device_kernels[name], lambda launch, stream, _: [_launch(launch, DeviceMemory), stream or 0])
            _call("kernels_add", table._handle, _encoded(name), host, device, None)
        return table

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
        into.memory, into.memory_count = array, len(slots)
        self._kept += [slots, array]

    def _calling(self, kind, function, lend):
        """A callback that passes on what `lend` makes of its arguments. No exception leaves it: the library is below."""
        if not callable(function):
            raise TypeError(f"a function is expected here, not {type(function).__name__}")

        def callback(*arguments):
            lent = []
            try:
                if self._ending:
                    return 1
                lent = lend(*arguments)
                function(*lent)
                return 0
            except BaseException as fault:  # pylint: disable=broad-except
                self._note(fault)
                return 1
            finally:
                for thing in lent:
                    if isinstance(thing, _Handle):
                        thing._at = thing._loan = None

        self._kept.append(kind(callback))
        return self._kept[-1]

    def _note(self, fault: BaseException):
        place = fault.__traceback__
        while place and place.tb_frame.f_globals is globals():
            place = place.tb_next  # to the user's code
        BaseException.with_traceback(fault, place)
        if isinstance(fault, Exception):
            self.record.exceptions.append(fault)
        elif not self._ending:
            self._ending = fault

    def _hold_interrupts(self):
        """Ctrl-C that comes outside the user's code would be raised where nobody hears of it. Returns the usual handler, or None."""
        def hold(_, frame):
            if frame and frame.f_globals is not globals():
                raise KeyboardInterrupt
            self._ending = KeyboardInterrupt()

        try:
            return signal.signal(signal.SIGINT, hold) if signal.getsignal(signal.SIGINT) is signal.default_int_handler else None
        except ValueError:
            return None  # it comes to another thread


def _launch(launch, memory) -> Launch:
    def all_of(function, read_only):
        found, size = [], _size()
        while address := function(launch, len(found), ctypes.byref(size)):
            found.append(memory(address, size.value, read_only))
        return found

    of = launch[0]
    parameters = ctypes.string_at(of.parameters, of.parameters_size) if of.parameters else b""
    return Launch(all_of(_library.tutti_launch_read, True), all_of(_library.tutti_launch_written, False), parameters)
