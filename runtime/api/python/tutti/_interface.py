"""The C interface (tutti.h) by ctypes: its structs and functions, texts and numbers that fit it, and handles."""
from __future__ import annotations

import collections.abc
import ctypes
import json
import operator
import os
import pathlib
import re

_SERIES = "0.2"  # versions of one major and minor number have one binary interface


class Error(Exception):
    """A file, an argument, the machine or a kernel that failed, with the library's sentence.

    kind: "input", "machine" or "kernel". file, line and column are None where the sentence names no place.
    """

    __module__ = __package__
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
                ("overwritten", ctypes.c_int), ("reused_input", ctypes.c_int), ("seen_ns", _i64), ("error", _text)]


class _Slot(ctypes.Structure):
    _fields_ = [("buffer", _text), ("data", _c), ("size", _size)]


class _TaskVerdict(ctypes.Structure):
    _fields_ = [("wcet_ns", _i64), ("deadline_ns", _i64), ("worst_response_ns", _i64)]


class _Remedy(ctypes.Structure):
    _fields_ = [("name", _text), ("from", _text), ("to", _text)]


class _TaskRing(ctypes.Structure):
    _fields_ = [("buffer", _text), ("ring", _c)]


class _RingSlot(ctypes.Structure):
    _fields_ = [("slot", _size), ("number", ctypes.c_uint64), ("is_new", ctypes.c_int)]


class _TaskTrigger(ctypes.Structure):
    _fields_ = [("task", _text), ("trigger", _c)]


class _ChangeRecord(ctypes.Structure):
    _fields_ = [("at_ns", _i64), ("leaves", _text), ("comes", _text), ("answered_ns", _i64), ("answer", ctypes.c_int), ("reason", _text)]


class _StreamBinding(ctypes.Structure):
    _fields_ = [("source", _c), ("destination", _c), ("kernel_input", _c), ("kernel_output", _c), ("parameters", _text),
                ("parameters_size", _size)]


class _BatchResult(ctypes.Structure):
    _fields_ = [("start_ns", _i64), ("finish_ns", _i64), ("overruns", ctypes.c_int)]


_HOST_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch), _c)
_DEVICE_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Launch), _c, _c)
_ON_JOB = ctypes.CFUNCTYPE(None, _c, _c)
_ON_STEP = ctypes.CFUNCTYPE(ctypes.c_int, _c, _size, _c)
_ON_RECORD = ctypes.CFUNCTYPE(None, _c, ctypes.POINTER(_JobRecord), _c)
_ON_END = ctypes.CFUNCTYPE(None, ctypes.POINTER(_JobRecord), _c)
_ON_CHANGE = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ChangeRecord), _c)
_ON_REMEDY = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Remedy), _c)
_ON_FREE = ctypes.CFUNCTYPE(None, _size, _c)
_RELEASED = ctypes.CFUNCTYPE(None, _c)


class _Program(ctypes.Structure):
    _fields_ = [("task", _text), ("on_ready", _ON_JOB), ("on_finished", _ON_JOB), ("user", _c), ("on_host_step", _ON_STEP),
                ("on_missed", _ON_RECORD), ("on_dropped", _ON_RECORD), ("on_failed", _ON_RECORD), ("on_start", _ON_JOB),
                ("memory", ctypes.POINTER(_Slot)), ("memory_count", _size), ("rings", ctypes.POINTER(_TaskRing)), ("ring_count", _size)]


class _RunOptions(ctypes.Structure):
    _fields_ = [("backend", ctypes.c_int), ("jobs", ctypes.c_uint64), ("seed", ctypes.c_uint64), ("kernels", _c),
                ("programs", ctypes.POINTER(_Program)), ("program_count", _size), ("on_job_end", _ON_END), ("user", _c),
                ("arrivals_before_ns", _i64), ("on_change", _ON_CHANGE), ("triggers", ctypes.POINTER(_TaskTrigger)),
                ("trigger_count", _size), ("journal", _text), ("journal_size", _i64), ("journal_files", _size), ("stop", _c)]


class _Summary(ctypes.Structure):
    _fields_ = [("jobs", ctypes.c_uint64), ("missed", ctypes.c_uint64), ("failed", ctypes.c_uint64),
                ("over_bound", ctypes.c_uint64), ("interrupted", ctypes.c_int)]


_FUNCTIONS = {
    "version": (_text,), "last_error": (_text,),
    "machine_load": (_c, _text), "machine_parse": (_c, _text), "machine_free": (None, _c),
    "batch_load": (_c, _text), "batch_parse": (_c, _c, _text), "batch_machine": (_c, _c), "batch_free": (None, _c),
    "predict_batch_latency": (ctypes.c_int, _c, _text, ctypes.POINTER(_i64)),
    "predict_worst_batch_latency": (ctypes.c_int, _c, _text, ctypes.POINTER(_i64)),
    "task_set_load": (_c, _text), "task_set_parse": (_c, _c, _text), "task_set_size": (_size, _c),
    "task_set_name": (_text, _c, _size), "task_set_free": (None, _c),
    "check": (_c, _c, _text), "verdict_answer": (ctypes.c_int, _c), "verdict_reason": (_text, _c, _size),
    "verdict_task": (ctypes.c_int, _c, _size, ctypes.POINTER(_TaskVerdict)), "verdict_free": (None, _c),
    "planner_name": (_text, _size), "remedies": (ctypes.c_int, _c, _text, _ON_REMEDY, _c),
    "capacity": (ctypes.c_int, _c, ctypes.c_int, _text, _text, ctypes.POINTER(_i64)),
    "kernels_new": (_c,), "kernels_free": (None, _c),
    "kernels_add": (ctypes.c_int, _c, _text, _HOST_KERNEL, _DEVICE_KERNEL, _c),
    "launch_read": (_c, ctypes.POINTER(_Launch), _size, ctypes.POINTER(_size)),
    "launch_written": (_c, ctypes.POINTER(_Launch), _size, ctypes.POINTER(_size)),
    "job_task": (_size, _c), "job_index": (ctypes.c_uint64, _c), "job_step": (_text, _c),
    "job_overwritten": (ctypes.c_int, _c), "job_buffer": (_c, _c, _text, ctypes.POINTER(_size)),
    "kept_buffer": (_c, _c, _text, ctypes.POINTER(_size)),
    "job_slot": (ctypes.c_int, _c, _text, ctypes.POINTER(_RingSlot)),
    "ring_new": (_c, ctypes.POINTER(_c), _size, _size, _ON_FREE, _c), "ring_begin": (_i64, _c), "ring_begin_slot": (ctypes.c_int, _c, _size),
    "ring_complete": (ctypes.c_int, _c, _size), "ring_is_free": (ctypes.c_int, _c, _size), "ring_free": (None, _c),
    "trigger_new": (_c,), "trigger_fire": (None, _c), "trigger_free": (None, _c),
    "shared_trigger_open": (_c, _text), "shared_trigger_fire": (ctypes.c_int, _c), "shared_trigger_free": (None, _c),
    "hold_new": (_c, _c), "hold_free": (None, _c),
    "stop_new": (_c,), "stop_request": (None, _c), "stop_free": (None, _c),
    "run": (ctypes.c_int, _c, ctypes.POINTER(_RunOptions), ctypes.POINTER(_Summary)),
    "change_requests_new": (_c, _c), "change_requests_post": (ctypes.c_int, _c, _i64, _text, _text), "change_requests_free": (None, _c),
    "run_changing": (ctypes.c_int, _c, ctypes.POINTER(_text), _size, _text, ctypes.POINTER(_RunOptions), ctypes.POINTER(_Summary)),
    "profile": (_c, _c, ctypes.POINTER(_RunOptions), ctypes.c_int, ctypes.c_double),
    "runtime_open": (_c, _c, _c, ctypes.c_int, _text), "runtime_free": (None, _c),
    "buffer_allocate": (_c, _c, _text, _i64), "buffer_wrap": (_c, _c, _text, _c, _i64, _RELEASED, _c),
    "buffer_wrap_tensor": (_c, _c, _text, _c), "buffer_lend_tensor": (_c, _c, _c), "buffer_bytes": (_c, _c), "buffer_size": (_i64, _c), "buffer_free": (None, _c),
    "prepare": (_c, _c, _c, ctypes.POINTER(_StreamBinding), _size, ctypes.c_int), "prepared_batch_free": (None, _c),
    "batch_op": (ctypes.c_int, _c, ctypes.POINTER(_BatchResult)), "batch_op_async": (_c, _c),
    "batch_op_query": (ctypes.c_int, _c, ctypes.POINTER(ctypes.c_int)),
    "batch_op_synchronize": (ctypes.c_int, _c, ctypes.POINTER(_BatchResult)), "batch_run_free": (None, _c),
}


def _load_library():
    """The library in this folder, as in a wheel, else in the module's prefix, else where the loader looks; TUTTI_LIBRARY names another."""
    name, here = f"libtutti.so.{_SERIES}", pathlib.Path(__file__).resolve()
    in_prefix = [folder for parent in here.parents[:6] for folder in sorted((parent / "lib").glob("*-linux-gnu*")) + [parent / "lib"]]
    beside = [folder / name for folder in [here.parent, *in_prefix] if (folder / name).exists()]
    path = os.environ.get("TUTTI_LIBRARY") or str(next(iter(beside), name))
    try:
        library = ctypes.CDLL(path)
    except OSError as fault:
        raise ImportError(f"{path} does not load ({fault}); install the library of tutti {_SERIES} and what it needs, or name its file in TUTTI_LIBRARY") from fault
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


def _backend(name: str) -> int:
    backends = {"sim": 0, "cuda": 1}
    if name not in backends:
        raise Error(f"there is no backend '{name}'; give one of {', '.join(backends)}")
    return backends[name]


def _source(what: str | collections.abc.Mapping) -> bytes:
    """The text of a file; a dictionary is one, since YAML takes JSON."""
    return _encoded(what if isinstance(what, str) else json.dumps({"version": 1, **what}, allow_nan=False, ensure_ascii=False))


def _whole(name: str, number: int, bits: int) -> int:
    """A number that fits: ctypes would cut another."""
    number = operator.index(number)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} is a whole number from 0 to 2**{bits} - 1")
    return number


def _array_of(address: int, size: int, read_only: bool) -> dict:
    """Bytes in memory by the interface of arrays."""
    return {"shape": (size,), "typestr": "|u1", "data": (address, read_only), "version": 3}


def _view_of(owner, address: int, size: int, read_only: bool) -> memoryview:
    """Bytes in memory of the host, which the owner holds as long as the view is there."""
    array = (ctypes.c_uint8 * size).from_address(address)
    setattr(array, "memory", owner)
    bytes_ = memoryview(array).cast("B") if size else memoryview(b"")
    return bytes_.toreadonly() if read_only else bytes_


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
