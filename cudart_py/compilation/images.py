"""The result of a compilation, for programs and for the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from .names.signatures import Parameter, Signature


@dataclass(frozen=True, slots=True)
class KernelAttributes:
    """The resources and limits of one kernel. Sizes are in bytes.

    For a compiled image, the registers, the shared and local memory and the spills come from the assembler's report,
    and values that are known only on a device are None. For a loaded kernel, the values come from the driver
    (cuFuncGetAttribute), except for the spills. These come from the assembler's report, and are None if the kernel was
    loaded from an image.

    `local_bytes` is the local memory per thread, for arrays and spilled registers. `spill_store_bytes` and
    `spill_load_bytes` are the numbers of bytes that the instructions for spilled registers store and load. Each
    instruction counts once, however often it is executed.
    """

    registers: int
    shared_bytes: int
    local_bytes: int
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    constant_bytes: int | None = None
    max_threads_per_block: int | None = None
    ptx_version: int | None = None
    binary_version: int | None = None
    max_dynamic_shared_bytes: int | None = None


class Variable(NamedTuple):
    """A `__device__`, `__constant__` or `__managed__` variable.

    `symbol` is the name in the image, `name` is the C++ name, and `space` is "global", "const" or "managed". `type`,
    `dtype` (the name of a NumPy dtype) and `shape` are those of the declaration if the compiler reported them.
    Otherwise `type` is empty, `dtype` is None and `shape` is the size in bytes.
    """

    symbol: str
    name: str
    size: int
    alignment: int
    space: str
    type: str
    dtype: str | None
    shape: tuple[int, ...]


def normalised(name: str) -> str:
    """Return a name without white space and without a leading `&`, both of which are optional in C++."""
    return "".join(name.split()).removeprefix("&")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompiledImage:
    """The code of one source for one architecture, with its signatures and names.

    `ptx` is the PTX as bytes, without a terminating NUL, and `cubin` is machine code for `arch` ("sm_90"). An image for
    a virtual architecture ("compute_90") has only PTX. An image that was compiled with `-dlto` has only link-time code
    (`ltoir`) and no signatures. Missing parts are empty.

    `signatures` and `attributes` are keyed by entry, `variables` by symbol. `names` maps every name that a program may
    use, including name expressions, to the entries and symbols that the name can mean. To look up a name, use the
    methods `entries` and `symbols`. `log` contains the warnings about the program's own files. `source` is the text
    that was compiled; it is empty for a linked image.

    `cudart_py.load` loads an image, and `cudart_py.link` links several images. A pickled image keeps all its parts.
    """

    name: str
    arch: str
    ptx: bytes
    cubin: bytes
    ltoir: bytes
    signatures: Mapping[str, Signature]
    variables: Mapping[str, Variable]
    names: Mapping[str, tuple[str, ...]]
    attributes: Mapping[str, KernelAttributes]
    log: str
    source: str = ""

    def __repr__(self) -> str:
        kernels = ", ".join(str(signature) for signature in self.signatures.values())
        return f"<CompiledImage {self.name!r} for {self.arch}: {kernels or 'no kernels'}>"

    def entries(self, name: str) -> tuple[str, ...]:
        """Return the entries of the kernels that a name can mean: none, one, or several if the name is ambiguous."""
        return self._found(name, self.signatures)

    def symbols(self, name: str) -> tuple[str, ...]:
        """Return the symbols of the variables that a name can mean: none, one, or several if the name is ambiguous."""
        return self._found(name, self.variables)

    def _found(self, name: str, among: Mapping[str, object]) -> tuple[str, ...]:
        return tuple(symbol for symbol in self.names.get(normalised(name), ()) if symbol in among)


def describe(image: CompiledImage) -> dict[str, Any]:
    """Return a JSON-serialisable description of an image without its code."""
    return {
        "name": image.name,
        "arch": image.arch,
        "signatures": [
            [item.entry, item.name, [_fields(parameter) for parameter in item.parameters]]
            for item in image.signatures.values()
        ],
        "variables": list(image.variables.values()),
        "names": image.names,
        "attributes": {entry: astuple(attributes) for entry, attributes in image.attributes.items()},
        "log": image.log,
    }


def restore(description: Mapping[str, Any], images: Sequence[bytes]) -> CompiledImage:
    """Reconstruct an image from its description and its code."""
    ptx, cubin, ltoir = images
    signatures = (
        Signature(entry, name, tuple(Parameter(*fields) for fields in parameters))
        for entry, name, parameters in description["signatures"]
    )
    variables = (Variable._make([*fields, tuple(shape)]) for *fields, shape in description["variables"])
    return CompiledImage(
        description["name"],
        description["arch"],
        ptx,
        cubin,
        ltoir,
        {item.entry: item for item in signatures},
        {item.symbol: item for item in variables},
        {name: tuple(found) for name, found in description["names"].items()},
        {entry: KernelAttributes(*fields) for entry, fields in description["attributes"].items()},
        description["log"],
    )


def _fields(parameter: Parameter) -> list[Any]:
    return [getattr(parameter, name) for name in parameter.__slots__]
