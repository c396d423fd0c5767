"""Batches that run by themselves, on memory of the runtime or of the program."""
from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import typing

import tutti
from ._callbacks import _Callbacks
from ._interface import Error, _BatchResult, _Handle, _RELEASED, _StreamBinding, _backend, _call, _encoded, _handle_of, _library, _planner, _whole

_lent: dict[int, object] = {}  # memory of the program that the library has, by the address of what holds it


@_RELEASED
def _released(key):
    _lent.pop(key, None)


@dataclasses.dataclass(frozen=True)
class BatchResult:
    """How a run of a batch ended: instants in ns on the clock of its runtime, and how many kernels took longer than declared."""

    start_ns: int
    finish_ns: int
    overruns: int

    @property
    def latency_ns(self) -> int:
        """From its start to the end of its last stream."""
        return self.finish_ns - self.start_ns


@dataclasses.dataclass(frozen=True)
class Binding:
    """Buffers and parameters of one stream; what it does not need is left out. kernel_input None: where its copy ends."""

    source: Buffer | None = None
    destination: Buffer | None = None
    kernel_input: Buffer | None = None
    kernel_output: Buffer | None = None
    parameters: bytes = b""


class Buffer(_Handle):
    """Memory of a runtime. In a memory of the host NumPy takes it without a copy (`numpy.asarray`); it stays as long as something
    has it."""

    _free = "buffer_free"

    @property
    def size(self) -> int:
        """In bytes."""
        return _library.tutti_buffer_size(self._handle)

    @property
    def __array_interface__(self) -> dict:
        return {"shape": (self.size,), "typestr": "|u1", "data": (self._address(), False), "version": 3}

    def view(self) -> memoryview:
        """The memory as a memoryview of bytes."""
        array = (ctypes.c_uint8 * self.size).from_address(self._address())
        array.memory = self
        return memoryview(array).cast("B") if self.size else memoryview(b"")

    def _address(self) -> int:
        address = _library.tutti_buffer_bytes(self._handle)
        if not address and self.size:
            raise Error("this buffer lies in a GPU, where the host sees nothing; copy it to a memory by a batch")
        return address or 0


class Runtime(_Handle):
    """A machine that runs batches, one after the other in the order of issue. One thread at a time uses it and what was made
    from it."""

    _free = "runtime_free"
    _callbacks: _Callbacks

    @classmethod
    def open(cls, machine: tutti.Machine, *, backend: str = "sim", planner: str | None = None,
             kernels: collections.abc.Mapping[str, typing.Callable] = {},
             device_kernels: collections.abc.Mapping[str, typing.Callable] = {}) -> Runtime:
        """Opens a machine. kernels and device_kernels are as in `Verdict.run`; their memory is lent until they return."""
        callbacks = _Callbacks()
        table = callbacks._table({**kernels}, {**device_kernels})
        at = _call("runtime_open", _handle_of(tutti.Machine, machine), table._handle, _backend(backend), _planner(planner))
        return cls._of(at, _callbacks=callbacks)

    def allocate(self, place: str, size: int) -> Buffer:
        """Zeroed memory in a memory or a GPU; size in bytes."""
        return Buffer._of(_call("buffer_allocate", self._handle, _encoded(place), _whole("size", size, 63)), _runtime=self)

    def wrap(self, place: str, memory) -> Buffer:
        """A buffer of memory that the program has: an object with writable memory of the host (a NumPy array), or one of a GPU with
        `__cuda_array_interface__`, whose elements follow each other. Nothing is copied; the object is held as long as it is used."""
        interface = getattr(memory, "__cuda_array_interface__", None)
        if interface is None:
            kept = (ctypes.c_uint8 * (view := memoryview(memory)).nbytes).from_buffer(view)
            address, size = ctypes.addressof(kept), view.nbytes
        else:
            kept, address, size = memory, *_on_gpu(interface)
        _lent[id(kept)] = kept
        try:
            return Buffer._of(_call("buffer_wrap", self._handle, _encoded(place), address, size, _released, id(kept)), _runtime=self)
        except BaseException:
            _lent.pop(id(kept), None)
            raise

    def prepare(self, batch: tutti.Batch, bindings: collections.abc.Sequence[Binding] = (), *, in_flight: int = 1) -> PreparedBatch:
        """Plans a batch and makes everything ready for its runs. bindings: one a stream, in their order; none: scratch buffers.
        in_flight: most runs of it at once, 1 to 64."""
        table = (_StreamBinding * max(len(bindings), 1))()
        for place, binding in enumerate(bindings):
            ends = (binding.source, binding.destination, binding.kernel_input, binding.kernel_output)
            handles = (None if buffer is None else _handle_of(Buffer, buffer) for buffer in ends)
            table[place] = _StreamBinding(*handles, binding.parameters, len(binding.parameters))
        at = self._checked("prepare", self._handle, _handle_of(tutti.Batch, batch), table if bindings else None, len(bindings), _whole("in_flight", in_flight, 31))
        return PreparedBatch._of(at, _runtime=self)

    def _checked(self, function, *arguments):
        """Calls a function that may call kernels; raises what these raised."""
        callbacks = self._callbacks
        try:
            result = _call(function, *arguments)
        except Error as fault:
            raise callbacks._ending or fault from next(iter(callbacks.exceptions), None)
        finally:
            ending, callbacks._ending = callbacks._ending, None
            callbacks.exceptions.clear()
        if ending:
            raise ending
        return result


class PreparedBatch(_Handle):
    """A batch that is ready to run repeatedly."""

    _free = "prepared_batch_free"
    _runtime: Runtime

    def run(self) -> BatchResult:
        """Runs it and waits for its end. A kernel that raised is the cause of the `Error`."""
        result = _BatchResult()
        self._runtime._checked("batch_op", self._handle, ctypes.byref(result))
        return _result(result)

    def start(self) -> BatchRun:
        """Issues it; it starts when everything issued before is finished."""
        return BatchRun._of(self._runtime._checked("batch_op_async", self._handle), _batch=self)


class BatchRun(_Handle):
    """One run of a prepared batch. One that is dropped runs to its end."""

    _free = "batch_run_free"
    _batch: PreparedBatch

    def is_finished(self) -> bool:
        """Whether it has ended. On the simulated machine each call lets the next event happen."""
        finished = ctypes.c_int()
        self._batch._runtime._checked("batch_op_query", self._handle, ctypes.byref(finished))
        return bool(finished.value)

    def wait(self) -> BatchResult:
        """Waits for its end, once."""
        result = _BatchResult()
        self._batch._runtime._checked("batch_op_synchronize", self._handle, ctypes.byref(result))
        return _result(result)


def _result(result: _BatchResult) -> BatchResult:
    return BatchResult(result.start_ns, result.finish_ns, result.overruns)


def _on_gpu(interface: dict) -> tuple[int, int]:
    """Address and bytes of an array of a GPU, whose elements must follow each other."""
    size = int(interface["typestr"][2:])
    for extent in reversed(interface["shape"]):
        size *= extent
    if interface.get("strides") is not None:
        raise ValueError("the elements of this array of a GPU may not follow each other; give a contiguous copy")
    return interface["data"][0], size
