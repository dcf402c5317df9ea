"""The address region: one inaccessible reservation, of which parts are opened for allocations and closed after them.

An address of the simulated device is the address of the same byte in this process. Addresses are given out in ascending
order and reused only after the whole reservation has been used, so that a stale pointer points to inaccessible memory.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import resource

PAGE = mmap.PAGESIZE
# From <sys/mman.h>; the mmap module can't reserve inaccessible memory at a chosen address.
_PROT_NONE = 0
_MAP_FIXED = 0x10
_MAP_NORESERVE = 0x4000

# Reservations cost nothing, but the machine may refuse the larger ones. They count towards a limit on the address
# space; if there is one, half of the remaining space is kept for the process itself.
_SIZES = tuple(1 << power for power in range(44, 25, -1))
_ALIGNMENT = 2 << 20
_SMALLEST_GAP = 64 << 10
_LARGEST_GAP = 256 << 20

_SLAB = 1 << 20
_LARGEST_IN_SLAB = 32 << 10
_SMALL_ALIGNMENT = 512


def _addresses_used() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * PAGE


class Region:
    """A reserved range of addresses, whose pages are accessible only where something is allocated."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._library.mmap.restype = ctypes.c_void_p
        self._library.mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        ]
        self._library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.start, self.end = self._reserve()
        self._cursor = self.start
        self._opened: dict[int, int] = {}  # start -> end of each open range
        self._opened_starts: list[int] = []
        self._slab_start = 0
        self._slab_cursor = 0
        self._slab_counts: dict[int, int] = {}  # start -> number of live allocations in the slab
        self._files: dict[int, int] = {}  # start -> descriptor of the file that has replaced an open range

    def _reserve(self) -> tuple[int, int]:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        most = _SIZES[0] if limit == resource.RLIM_INFINITY else (limit - _addresses_used()) // 2
        for size in _SIZES:
            if size > most:
                continue
            address = self._library.mmap(None, size, _PROT_NONE, flags, -1, 0)
            if address not in (None, ctypes.c_void_p(-1).value):
                return -(-address // _ALIGNMENT) * _ALIGNMENT, address + size
        why = (
            "" if limit == resource.RLIM_INFINITY else f": the address space is limited to {limit:,} bytes (ulimit -v)"
        )
        raise MemoryError(f"the simulator can't reserve {_SIZES[-1]:,} bytes of addresses{why}")

    def contains(self, address: int) -> bool:
        """Return whether an address is in the reservation."""
        return self.start <= address < self.end

    def open(self, size: int) -> int:
        """Return the address of `size` zero bytes; raise MemoryError if there is no room."""
        if size <= _LARGEST_IN_SLAB:
            return self._open_small(size)
        return self._open_pages(size)

    def close(self, address: int, size: int) -> None:
        """Close a range that `open` returned, and drop its bytes."""
        if size <= _LARGEST_IN_SLAB:
            slab = self._range_of(address)
            self._slab_counts[slab] -= 1
            if not self._slab_counts[slab] and slab != self._slab_start:
                del self._slab_counts[slab]
                self._close_pages(slab)
        else:
            self._close_pages(address)

    def reserve(self, size: int, alignment: int) -> int:
        """Return the address of `size` inaccessible bytes, whole pages, into which memory may be mapped.

        Raises MemoryError if there is no room.
        """
        gap = self._gap(size)
        start = self._free_range(size + gap, max(alignment, _ALIGNMENT))
        self._take(start, size, gap)
        return start

    def give_back(self, address: int) -> None:
        """Give back a range that `reserve` returned, and whatever is still mapped into it."""
        self._close_pages(address)

    def map_file(self, address: int, size: int, descriptor: int) -> None:
        """Map the first `size` bytes of a file at an address in an open or reserved range, and drop its contents.

        Raises MemoryError if the machine refuses.
        """
        access = mmap.PROT_READ | mmap.PROT_WRITE
        if self._library.mmap(address, size, access, mmap.MAP_SHARED | _MAP_FIXED, descriptor, 0) != address:
            raise MemoryError(f"the machine refused to map {size} bytes")

    def file_at(self, address: int) -> tuple[int, int, int | None]:
        """Return the start and the end of the open range that contains an address, and the file that replaced it."""
        start = self._range_of(address)
        return start, self._opened[start], self._files.get(start)

    def replace(self, start: int, descriptor: int) -> None:
        """Replace the pages of an open range by those of a file, which is closed with the range."""
        self.map_file(start, self._opened[start] - start, descriptor)
        self._files[start] = descriptor

    def unmap(self, address: int, size: int) -> None:
        """Make whole pages inaccessible and drop their bytes, unless they are those of a file."""
        # Mapping the pages again drops their bytes and page tables, and makes them inaccessible, in one step.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE | _MAP_FIXED
        self._library.mmap(address, size, _PROT_NONE, flags, -1, 0)

    def _open_small(self, size: int) -> int:
        needed = -(-size // _SMALL_ALIGNMENT) * _SMALL_ALIGNMENT
        if not self._slab_start or self._slab_cursor + needed > self._slab_start + _SLAB:
            emptied = self._slab_start
            self._slab_start = self._slab_cursor = self._open_pages(_SLAB)
            self._slab_counts[self._slab_start] = 0
            if emptied and not self._slab_counts[emptied]:
                del self._slab_counts[emptied]
                self._close_pages(emptied)
        address = self._slab_cursor
        # Leave a gap after each allocation, so that the byte past its end belongs to no allocation.
        self._slab_cursor += needed + _SMALL_ALIGNMENT
        self._slab_counts[self._slab_start] += 1
        return address

    def _range_of(self, address: int) -> int:
        return self._opened_starts[bisect.bisect_right(self._opened_starts, address) - 1]

    def _open_pages(self, size: int) -> int:
        length = -(-size // PAGE) * PAGE
        gap = self._gap(length)
        alignment = _ALIGNMENT if length >= _ALIGNMENT else _SMALLEST_GAP
        start = self._free_range(length + gap, alignment)
        if self._library.mprotect(start, length, mmap.PROT_READ | mmap.PROT_WRITE):
            raise MemoryError(f"the machine refused to provide {length} bytes")
        self._take(start, length, gap)
        return start

    def _gap(self, length: int) -> int:
        """Return the size of the gap after a range, which grows with it, so that a wild index is likely to hit it."""
        return min(max(length, _SMALLEST_GAP), _LARGEST_GAP, max(_SMALLEST_GAP, (self.end - self.start) >> 6))

    def _take(self, start: int, length: int, gap: int) -> None:
        self._cursor = start + length + gap
        self._opened[start] = start + length
        bisect.insort(self._opened_starts, start)

    def _free_range(self, length: int, alignment: int) -> int:
        for first in (self._cursor, self.start):
            candidate = -(-first // alignment) * alignment
            while candidate + length <= self.end:
                # Something may be open ahead of the cursor only after it has wrapped around.
                index = bisect.bisect_left(self._opened_starts, candidate + length)
                if not index or self._opened[self._opened_starts[index - 1]] <= candidate:
                    return candidate
                candidate = -(-self._opened[self._opened_starts[index - 1]] // alignment) * alignment
        raise MemoryError(f"no {length} bytes of addresses are left")

    def _close_pages(self, start: int) -> None:
        length = self._opened.pop(start) - start
        del self._opened_starts[bisect.bisect_left(self._opened_starts, start)]
        descriptor = self._files.pop(start, None)
        if descriptor is not None:
            os.close(descriptor)
        self.unmap(start, length)
