"""What the library calls: kernels and other functions of the user, with the memory that they are lent."""
from __future__ import annotations

import ctypes
import dataclasses
import os
import signal
import socket
import threading
import typing

from ._interface import Error, _DEVICE_KERNEL, _HOST_KERNEL, _Handle, _array_of, _call, _encoded, _library, _size, _view_of


class _Hold(_Handle):
    """Memory of the library at an address stays."""

    _free = "hold_free"


class _Loan:
    """Memory of a run, and of the program in it. What has some of it has the loan: whether something does is seen behind the run, and
    the memory stays as long."""

    is_over = False

    def __init__(self, made: dict[int, _Hold]):
        """made: holds that other loans share, by address; what made them forgets them."""
        self._made = made
        self._holds: dict[int, _Hold] = {}
        self.of_program: list = []  # goes after the holds of it

    def hold(self, address: int):
        """Before another library gets an address."""
        if address not in self._holds:
            if (hold := self._made.get(address)) is None:
                hold = self._made[address] = _Hold._of(_call("hold_new", address))
            self._holds[address] = hold

    def __reduce__(self):
        raise TypeError("memory of a run is neither copied so nor pickled; keep its bytes, such as bytes(memory.view())")


@dataclasses.dataclass(frozen=True)
class HostMemory:
    """Memory of the host, for NumPy (`numpy.asarray`) and whatever else takes the array interface. Nothing is copied: other jobs
    write what a callback keeps of it, and it stays until the last array or view of it is gone. Keep copies, such as
    `bytes(memory.view())`."""

    address: int
    size: int
    read_only: bool
    _loan: _Loan = dataclasses.field(default_factory=lambda: _Loan({}), repr=False, compare=False)

    @property
    def __array_interface__(self) -> dict:
        return _array_of(self._where(), self.size, self.read_only)

    def view(self) -> memoryview:
        """The same memory as a memoryview of bytes."""
        return _view_of(self, self._where(), self.size, self.read_only)

    def _where(self) -> int:
        if self._loan.is_over:
            raise Error("the run is over, or the kernel that this memory was lent to; copy what you keep of it there")
        if self.size:
            self._loan.hold(self.address)
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
        return {**_array_of(self.address, self.size, False), "stream": None}


@dataclasses.dataclass(frozen=True)
class Launch:
    """Memory and parameters of one launch of a kernel: what it reads and writes, as the task set names them. In a batch
    without names it reads where its transfer ended, and writes its output."""

    reads: list
    writes: list
    parameters: bytes

    def _take_back(self):
        for memory in self.reads + self.writes:
            if isinstance(memory, HostMemory):
                memory._loan.is_over = True


def _is_own(frame) -> bool:
    """Whether the frame is of this package, and not of a user's function."""
    return frame.f_globals.get("__package__") == __package__


class _Kernels(_Handle):
    """A table of kernels."""

    _free = "kernels_free"


class _Callbacks:
    """Functions of the user as the library calls them, and what they raised. It stays while they may be called."""

    def __init__(self, loan: _Loan | None = None):
        """loan: that of the memory of kernels; None: it is lent until they return."""
        self._loan, self._kept, self.exceptions = loan, list[typing.Any](), list[Exception]()
        self.holds = dict[int, _Hold]()  # of memory that kernels are lent until they return
        self._ending: BaseException | None = None

    def _table(self, kernels, device_kernels) -> _Kernels:
        table = _Kernels._of(_call("kernels_new"))
        for name in {**kernels, **device_kernels}:
            host, device = _HOST_KERNEL(), _DEVICE_KERNEL()
            if name in kernels:
                host = self._calling(_HOST_KERNEL, kernels[name], lambda launch, _: [
                    _launch(launch, lambda *of: HostMemory(*of, self._loan or _Loan(self.holds)))])
            if name in device_kernels:
                device = self._calling(_DEVICE_KERNEL, device_kernels[name], lambda launch, stream, _: [_launch(launch, DeviceMemory), stream or 0])
            _call("kernels_add", table._handle, _encoded(name), host, device, None)
        return table

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
                    elif self._loan is None and isinstance(thing, Launch):
                        thing._take_back()

        self._kept.append(kind(callback))
        return self._kept[-1]

    def _note(self, fault: BaseException):
        place = fault.__traceback__
        while place and _is_own(place.tb_frame):
            place = place.tb_next  # to the user's code
        BaseException.with_traceback(fault, place)
        if isinstance(fault, Exception):
            self.exceptions.append(fault)
        else:
            self._end(fault)

    def _end(self, why: BaseException):
        """Nothing of the user's is called any more, and `why` is raised behind the library's function."""
        self._ending = self._ending or why


class _Interrupts:
    """Ctrl-C while the library works: `end` is called at once, by a thread. Python calls its own handler behind the library's function
    only, and in a function of the user, where KeyboardInterrupt is raised then."""

    def __init__(self, end):
        self._end, self._usual, self._is_over = end, None, False

    def __enter__(self):
        in_main_thread = threading.current_thread() is threading.main_thread()
        if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()
        self._usual = signal.signal(signal.SIGINT, self._hold)

    def __exit__(self, *_):
        if self._usual:
            self._is_over = True
            signal.set_wakeup_fd(self._before)
            self._writer.close()
            self._waiting.join()
            signal.signal(signal.SIGINT, self._usual)

    def _hold(self, _, frame):
        self._end()
        if frame and not _is_own(frame) and not self._is_over:
            raise KeyboardInterrupt

    def _wait(self):
        with self._reader:
            while signals := self._reader.recv(64):
                if self._before >= 0:
                    os.write(self._before, signals)  # to asyncio, say
                if signal.SIGINT in signals:
                    self._end()


def _launch(launch, memory) -> Launch:
    def all_of(function, read_only):
        found, size = [], _size()
        while address := function(launch, len(found), ctypes.byref(size)):
            found.append(memory(address, size.value, read_only))
        return found

    of = launch[0]
    parameters = ctypes.string_at(of.parameters, of.parameters_size) if of.parameters else b""
    return Launch(all_of(_library.tutti_launch_read, True), all_of(_library.tutti_launch_written, False), parameters)
