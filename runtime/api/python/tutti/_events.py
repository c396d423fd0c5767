"""What other threads say to a run: rings that a producer fills, triggers, and the wish that it ends."""
from __future__ import annotations

import collections.abc
import ctypes
import typing

from ._interface import Error, _ON_FREE, _Handle, _call, _encoded, _library, _whole


class Ring(_Handle):
    """Slots of the program's memory that a producer, such as a camera's thread, fills at a rate of its own. A job has the newest
    complete one, never torn. Any thread may call, and none waits for another."""

    _free = "ring_free"

    def __init__(self, slots: collections.abc.Sequence, on_free: typing.Callable[[int], typing.Any] | None = None):
        """slots: writable memory of the host, 3 to 4096 objects of one size; a run needs two more than jobs can be alive.
        on_free(slot): a slot is free again."""
        views = [memoryview(slot) for slot in slots]
        if len({view.nbytes for view in views}) > 1:
            raise ValueError("slots of a ring have one size; give memory of the same size for each")
        self.slots = list(slots)
        self._memory = [(ctypes.c_uint8 * view.nbytes).from_buffer(view) for view in views]
        self._on_free = _ON_FREE((lambda slot, _: on_free(slot)) if on_free else 0)
        places = (ctypes.c_void_p * max(len(views), 1))(*map(ctypes.addressof, self._memory))
        self._at = _call("ring_new", places, len(views), views[0].nbytes if views else 0, self._on_free, None)

    def begin(self, slot: int | None = None) -> int | None:
        """Takes a free slot to write to, or this one. Returns its position; None where none is free."""
        if slot is not None:
            _call("ring_begin_slot", self._handle, _whole("slot", slot, 32))
            return slot
        found = _library.tutti_ring_begin(self._handle)
        return None if found < 0 else found

    def complete(self, slot: int) -> None:
        """What was written to a slot that was begun is complete, and the newest there is."""
        _call("ring_complete", self._handle, _whole("slot", slot, 32))

    def is_free(self, slot: int) -> bool:
        """Whether begin(slot) would get it now."""
        return bool(_library.tutti_ring_is_free(self._handle, _whole("slot", slot, 32)))


class Trigger(_Handle):
    """Releases the jobs of a task whose release is external."""

    _free = "trigger_free"

    def __init__(self):
        self._at = _call("trigger_new")

    def fire(self) -> None:
        """A trigger comes now. Any thread; ignored while no run has it."""
        _library.tutti_trigger_fire(self._handle)


class SharedTrigger(_Handle):
    """The word in shared memory that a task names as `trigger: NAME`, for the process that fires it."""

    _free = "shared_trigger_free"

    def __init__(self, name: str):
        """Opens the word, and makes it where there is none."""
        self._at = _call("shared_trigger_open", _encoded(name))

    def fire(self) -> None:
        """A trigger comes now. Any thread."""
        _call("shared_trigger_fire", self._handle)


class Stop(_Handle):
    """Ends the runs that have it."""

    _free = "stop_free"

    def __init__(self):
        self._at = _call("stop_new")

    def request(self) -> None:
        """The job under way is the last. Any thread; a run that begins later ends at once."""
        _library.tutti_stop_request(self._handle)
