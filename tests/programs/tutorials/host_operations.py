"""PyTorch's own operations on tensors of a GPU, done on the host.

PyTorch's kernels are machine code, which the simulator does not run. This mode copies the arguments of an operation to
the host, runs the operation there, and copies what it has returned or changed to the device. Operations that need no
kernel, such as views, allocations and plain copies, stay on the device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

# These only allocate memory.
_ALLOCATIONS = ("aten::empty", "aten::new_empty", "aten::resize_", "aten::set_")
# The host's version of these adds up in the precision of its arguments, and that of a GPU in single precision.
_IN_SINGLE_PRECISION = ("aten::native_layer_norm", "aten::native_layer_norm_backward")
_HOST = torch.device("cpu")


class OnHost(TorchDispatchMode):
    """While this mode is active, PyTorch's own operations on tensors of a GPU run on the host."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: tuple[Any, ...] = (), options: dict[str, Any] | None = None
    ) -> Any:
        """Run an operation of PyTorch."""
        options = options or {}
        name = operation._schema.name
        devices: list[torch.device] = []
        tree_map_only(torch.Tensor, lambda tensor: devices.append(tensor.device), (arguments, options))
        tree_map_only(torch.device, devices.append, (arguments, options))
        device = next((device for device in devices if device.type == "cuda"), None)
        if device is None or operation.is_view or name.startswith(_ALLOCATIONS) or name == "aten::lift_fresh":
            return operation(*arguments, **options)
        tensors = _HostTensors()
        on_host = tree_map_only(torch.Tensor, tensors.of, (arguments, options))
        on_host = tree_map_only(torch.device, lambda _: _HOST, on_host)
        result = _run(operation, *on_host)
        for place, argument in enumerate(operation._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                changed = options.get(argument.name, arguments[place] if place < len(arguments) else None)
                tree_map_only(torch.Tensor, tensors.copy_back, changed)
        # An operation that only reads a device's tensors for the host, such as a copy to it, keeps its result there.
        target = options.get("device") or device
        if torch.device(target).type == "cpu":
            return result
        return tree_map_only(torch.Tensor, lambda tensor: tensors.original(tensor, device), result)


def _run(operation: Any, arguments: Any, options: Any) -> Any:
    """Run an operation on the host."""
    halves = [tensor for tensor in arguments if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float16]
    if not halves or operation._schema.name not in _IN_SINGLE_PRECISION:
        return operation(*arguments, **options)
    widened = tree_map_only(torch.Tensor, torch.Tensor.float, arguments)
    # The statistics of the rows stay in single precision, as on a GPU.
    shapes = [tensor.shape for tensor in halves]
    return [one.half() if one.shape in shapes else one for one in operation(*widened, **options)]


class _HostTensors:
    """The host's copies of an operation's tensors. Tensors that share memory also share it on the host."""

    def __init__(self) -> None:
        self._storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._originals: dict[int, torch.Tensor] = {}
        self._kept: list[torch.Tensor] = []

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of the host with the elements of another."""
        if tensor.device.type == "cpu":
            self._originals[id(tensor)] = tensor
            return tensor
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._storages:
            whole = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage, 0, (storage.nbytes(),), (1,))
            copied = torch.empty(storage.nbytes(), dtype=torch.uint8).copy_(whole) if storage.nbytes() else whole.cpu()
            self._storages[storage.data_ptr()] = whole, copied
        _, copied = self._storages[storage.data_ptr()]
        host = torch.empty(0, dtype=tensor.dtype)
        host.set_(copied.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())
        self._originals[id(host)] = tensor
        self._kept.append(host)
        return host

    def copy_back(self, tensor: torch.Tensor) -> None:
        """Copy the memory of a tensor of the device from the host."""
        if tensor.device.type == "cuda" and tensor.numel():
            whole, copied = self._storages[tensor.untyped_storage().data_ptr()]
            whole.copy_(copied)

    def original(self, tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
        """Return the tensor of the device for a result on the host: an argument, or a new tensor."""
        if id(tensor) in self._originals:
            return self._originals[id(tensor)]
        copied = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=device)
        if tensor.numel():
            # A copy of bytes needs no kernel.
            _bytes(copied).copy_(_bytes(tensor))
        return copied


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor's memory as bytes."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    whole = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    start = tensor.storage_offset() * tensor.element_size()
    return whole.set_(tensor.untyped_storage(), start, (extent * tensor.element_size(),), (1,))
