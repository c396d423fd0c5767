"""Batches that run by themselves, on memory of the runtime or of the program."""
from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import itertools
import math
import typing

import tutti
from . import _tensors
from ._callbacks import _Callbacks
from ._interface import (Error, _BatchResult, _Handle, _RELEASED, _StreamBinding, _array_of, _backend, _call, _encoded, _handle_of,
                         _library, _planner, _view_of, _whole)

_keys = itertools.count(1)
_lent: dict[int, object] = {}  # memory of the program that the library has


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
    """Memory of a runtime. Other libraries take it without a copy: in a memory of the host by `numpy.asarray`, in a GPU by
    `cupy.asarray` or `torch.as_tensor`, in both by DLPack (`torch.from_dlpack`). It stays as long as something has it."""

    _free = "buffer_free"
    _runtime: Runtime

    @property
    def size(self) -> int:
        """In bytes."""
        return _library.tutti_buffer_size(self._handle)

    @property
    def __array_interface__(self) -> dict:
        return self._interface(self._address())

    @property
    def __cuda_array_interface__(self) -> dict:
        tensor = self._facts()
        if tensor.device_type != _tensors.CUDA:
            raise AttributeError("this buffer lies in memory of the host")
        return self._interface(tensor.data or 0)

    def __dlpack__(self, *, stream=None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None):
        """A tensor of its bytes. No batch may use the buffer while another library writes there: this orders nothing."""
        if max_version is None or max_version[0] < 1:
            raise BufferError("only DLPack 1 is given; take a newer version of the library that asks, or __array_interface__")
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("nothing is copied here, and nothing moved; take the tensor where it lies")
        return _tensors.capsule_of(self._lend())

    def __dlpack_device__(self) -> tuple[int, int]:
        tensor = self._facts()
        return tensor.device_type, tensor.device_id

    def view(self) -> memoryview:
        """The memory as a memoryview of bytes. Raises Error where it lies in a GPU."""
        return _view_of(self, self._address(), self.size, self._is_read_only())

    def _interface(self, address: int) -> dict:
        return _array_of(address, self.size, self._is_read_only())

    def _is_read_only(self) -> bool:
        return bool(self._facts().flags & _tensors.READ_ONLY)

    def _lend(self) -> int:
        return _call("buffer_lend_tensor", self._runtime._handle, self._handle)

    def _facts(self) -> _tensors.Tensor:
        address = self._lend()
        facts = _tensors.Tensor.from_buffer_copy(_tensors.Tensor.from_address(address))
        _tensors.give_back(address)
        return facts

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
        """A buffer of memory that the program has, whose elements follow each other: an object with writable memory of the host (a
        NumPy array), an array of a GPU with `__cuda_array_interface__`, or a tensor of DLPack 1. Nothing is copied; the object is
        held as long as it is used."""
        where = _encoded(place)
        try:
            view = memoryview(memory)
        except TypeError:
            if not hasattr(memory, "__cuda_array_interface__") and hasattr(memory, "__dlpack__"):
                return Buffer._of(_tensors.wrapped(self._handle, where, memory.__dlpack__(max_version=(1, 0))), _runtime=self)
            kept, (address, size) = memory, _on_gpu(memory)
        else:
            kept = (ctypes.c_uint8 * view.nbytes).from_buffer(view)
            address, size = ctypes.addressof(kept), view.nbytes
        key = next(_keys)
        _lent[key] = kept
        try:
            return Buffer._of(_call("buffer_wrap", self._handle, where, address, size, _released, key), _runtime=self)
        except BaseException:
            _lent.pop(key, None)
            raise

    def prepare(self, batch: tutti.Batch, bindings: collections.abc.Sequence[Binding] = (), *, in_flight: int = 1) -> PreparedBatch:
        """Plans a batch and makes everything ready for its runs. bindings: one a stream, in their order; none: scratch buffers.
        in_flight: most runs of it at once, 1 to 64."""
        table = (_StreamBinding * max(len(bindings), 1))()
        for place, binding in enumerate(bindings):
            ends = (binding.source, binding.destination, binding.kernel_input, binding.kernel_output)
            handles = (None if buffer is None else _handle_of(Buffer, buffer) for buffer in ends)
            table[place] = _StreamBinding(*handles, binding.parameters, len(binding.parameters))
        at = self._checked("prepare", self._handle, _handle_of(tutti.Batch, batch), table if bindings else None, len(bindings),
                           _whole("in_flight", in_flight, 31))
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

    def __del__(self):
        if self._at:
            self._runtime._callbacks.holds.clear()  # arrays that are kept have theirs
        super().__del__()


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


def _on_gpu(memory) -> tuple[int, int]:
    """Address and bytes of an array of a GPU, whose elements must follow each other."""
    interface = getattr(memory, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"memory is expected here, not {type(memory).__name__}; give an array or a tensor")
    if interface.get("strides") is not None:
        raise ValueError("the elements of this array of a GPU may not follow each other; give a contiguous copy")
    return interface["data"][0], math.prod(interface["shape"]) * int(interface["typestr"][2:])
