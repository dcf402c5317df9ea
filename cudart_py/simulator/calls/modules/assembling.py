"""The registers and the stack of kernels on a GPU, from NVIDIA's assembler, for PTX that does not state them."""

from __future__ import annotations

# The architecture of the simulated device.
_OPTIONS = ("-arch=sm_90", "-verbose")


def resources_of(text: str) -> dict[str, tuple[int, int]]:
    """Return the registers per thread and the size of a thread's stack in bytes, keyed by kernel (nvJitLink).

    The result is empty if nvJitLink is not installed, or rejects the PTX.
    """
    from cuda.bindings import nvjitlink  # imported late because few programs ask

    from ....compilation.assembler import read_attributes  # imported late, as above

    data, log = text.encode() + b"\0", b""
    try:
        handle = nvjitlink.create(len(_OPTIONS), list(_OPTIONS))
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), "image")
            nvjitlink.complete(handle)
            room = bytearray(nvjitlink.get_info_log_size(handle))
            nvjitlink.get_info_log(handle, room)
            log = bytes(room).rstrip(b"\0")
        finally:
            nvjitlink.destroy(handle)
    except (nvjitlink.nvJitLinkError, RuntimeError):  # RuntimeError: cuda.pathfinder does not find the library
        return {}
    found = read_attributes(log.decode(errors="replace"))
    return {name: (kernel.registers, kernel.local_bytes) for name, kernel in found.items()}
