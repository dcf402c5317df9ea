"""Images: the PTX that a program loads, as text or in a fatbin, from memory or from a file."""

from __future__ import annotations

import ctypes
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuda.bindings.driver import CUresult

from ....compilation.fatbins.compression import DecompressorMissingError, FatbinError
from ....compilation.fatbins.container import MAGIC as FATBIN
from ....compilation.fatbins.container import Entry, Kind, read_entries, size_of
from ...state.attributes import attribute
from ...state.errors import StatusError
from ...state.fault_reports import put_report

_LARGEST_TEXT = 1 << 30
# The first page is never mapped, so that null pointers with an offset are detected.
_LEAST_ADDRESS = 4096
_MACHINE_CODE = b"\x7fELF"
# The structure that nvcc puts into a program for each fatbin (fatbinary_section.h): a magic number, a version, and the
# addresses of the fatbin and, in version 2, of an array of the fatbins from which it was linked. The array ends with a
# zero.
_WRAPPER = struct.Struct("<4sI2Q")
_WRAPPER_MAGIC = b"\xb1\x43\x62\x46"
_LINKED_VERSION = 2
_FATBIN_HEADER_BYTES = 16
_REMEDY = "compile with PTX, as with nvcc -arch=compute_90 or -gencode arch=compute_90,code=compute_90"


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it was read: its bytes, and the fatbins from which nvcc linked it, if it is such a fatbin."""

    data: bytes
    parts: tuple[bytes, ...] = ()

    def ptx(self) -> list[str]:
        """Return the PTX: one text, or several that must be linked.

        Raises CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_IMAGE or CUDA_ERROR_NOT_SUPPORTED, with a report, if the
        image has no PTX for the device, is damaged, or can't be decompressed.
        """
        if self.parts and _best(_entries(self.data)) is None:
            # The linked fatbin has machine code at most. Some parts have no PTX, such as the device runtime.
            found = [entry for part in self.parts if (entry := _best(_entries(part))) is not None]
            if found:
                return [_code(entry) for entry in found]
        return [ptx_of_input(self.data)]


def read_image(image: Any) -> Image:
    """Return the image in a buffer or at an address: text that ends with a zero, a fatbin, or nvcc's wrapper of one.

    It is read from any address, as the driver does, except for addresses that no process can have. For those, raises
    CUDA_ERROR_INVALID_VALUE.
    """
    if image is None:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    data = _at_address(image) if isinstance(image, int) else bytes(memoryview(image)[:_LARGEST_TEXT])
    if not data.startswith(_WRAPPER_MAGIC) or len(data) < _WRAPPER.size:
        return Image(data)
    _, version, fatbin, parts = _WRAPPER.unpack_from(data)
    addresses = _array(parts) if version == _LINKED_VERSION else []
    return Image(_at_address(fatbin), tuple(map(_at_address, addresses)))


def read_image_file(name: Any) -> Image:
    """Return the image in a file: text or a fatbin; raise CUDA_ERROR_FILE_NOT_FOUND if it can't be read."""
    return Image(read_file(name))


def read_file(name: Any) -> bytes:
    """Return the bytes of a file, or raise CUDA_ERROR_FILE_NOT_FOUND with a report."""
    if not name:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    try:
        return Path(os.fsdecode(name)).read_bytes()
    except (OSError, ValueError) as error:
        put_report(f"the image {os.fsdecode(name)!r} cannot be read: {error}")
        raise StatusError(CUresult.CUDA_ERROR_FILE_NOT_FOUND) from None


def runs_here(arch: str) -> bool:
    """Return whether PTX for an architecture, such as "sm_90a", runs on the device."""
    device, number = _device(), int(arch.removeprefix("sm_").rstrip("af"))
    if arch[-1] == "a":  # the features of one architecture
        return number == device
    return number <= device and (arch[-1] != "f" or number // 10 == device // 10)  # "f": the features of a family


def refuse_target(what: str) -> StatusError:
    """Return the error for PTX that does not run on the device, with a report."""
    put_report(f"{what}, and the device is sm_{_device()}")
    return StatusError(CUresult.CUDA_ERROR_INVALID_PTX)


def _device() -> int:
    return 10 * attribute("COMPUTE_CAPABILITY_MAJOR") + attribute("COMPUTE_CAPABILITY_MINOR")


def _at_address(address: int) -> bytes:
    """Return the image at an address, as far as it is needed."""
    if not _LEAST_ADDRESS <= address < 1 << 64:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    start = ctypes.string_at(address, 4)
    if start == _WRAPPER_MAGIC:
        return ctypes.string_at(address, _WRAPPER.size)
    if start == FATBIN:
        return ctypes.string_at(address, _size(ctypes.string_at(address, _FATBIN_HEADER_BYTES)))
    return start if start == _MACHINE_CODE else ctypes.string_at(address)


def _array(address: int) -> list[int]:
    """Return the addresses in an array that ends with a zero."""
    found: list[int] = []
    while address and (item := ctypes.c_uint64.from_address(address + 8 * len(found)).value):
        found.append(item)
    return found


def ptx_of_input(data: bytes) -> str:
    """Return the PTX of text or of a fatbin; raise the same statuses as `Image.ptx`."""
    if data.startswith(FATBIN):
        entries = _entries(data)
        best = _best(entries)
        if best is None:
            contents = " and ".join(f"{_KINDS[entry.kind]} for {entry.arch}" for entry in entries) or "nothing"
            raise _refuse_code(f"the image is a fatbin with {contents}")
        return _code(best)
    if data.startswith(_MACHINE_CODE):
        raise _refuse_code("the image is a cubin, machine code for a GPU")
    return data.split(b"\0")[0].decode("utf-8", "replace")


def ptx_of_host_code(data: bytes, *, may_lack_ptx: bool) -> list[str]:
    """Return the PTX of each fatbin in an object file or a library of object files.

    Raises CUDA_ERROR_UNKNOWN if there is no fatbin, as an H200 does, and CUDA_ERROR_NO_BINARY_FOR_GPU if one has no PTX
    for the device, unless it `may_lack_ptx`.
    """
    texts = []
    start = data.find(FATBIN)
    while start >= 0:
        size = _size(data[start : start + _FATBIN_HEADER_BYTES])
        fatbin = data[start : start + size]
        if not may_lack_ptx or _best(_entries(fatbin)) is not None:
            texts.append(ptx_of_input(fatbin))
        start = data.find(FATBIN, start + size)
    if not texts and FATBIN not in data:
        put_report("the input of the link contains no device code")
        raise StatusError(CUresult.CUDA_ERROR_UNKNOWN)
    return texts


_KINDS = {
    Kind.PTX: "PTX",
    Kind.MACHINE_CODE: "machine code",
    Kind.LINK_TIME_CODE: "link-time code",
    None: "unknown code",
}


def _refuse_code(what: str) -> StatusError:
    put_report(f"{what}; the simulator runs only PTX for sm_{_device()} or lower: {_REMEDY}")
    return StatusError(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU)


def _size(header: bytes) -> int:
    try:
        return size_of(header)
    except FatbinError as error:
        raise _damaged(error) from None


def _entries(fatbin: bytes) -> list[Entry]:
    try:
        return read_entries(fatbin)
    except FatbinError as error:
        raise _damaged(error) from None


def _best(entries: list[Entry]) -> Entry | None:
    """Return the PTX for the highest architecture that runs on the device, the device's own features first."""
    usable = [entry for entry in entries if entry.kind is Kind.PTX and runs_here(entry.arch)]
    return max(usable, key=lambda entry: (entry.number, entry.arch), default=None)


def _code(entry: Entry) -> str:
    try:
        return entry.code().split(b"\0")[0].decode("utf-8", "replace")
    except FatbinError as error:
        raise _damaged(error) from None
    except DecompressorMissingError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED) from None


def _damaged(error: FatbinError) -> StatusError:
    put_report(str(error))
    return StatusError(CUresult.CUDA_ERROR_INVALID_IMAGE)
