"""Compiled images, `cuda.images`: the results of the compiler before a device loads them, and their cache."""

from .compilation.cache import CacheInfo, CacheWarning, cache_info, clear_cache
from .compilation.images import CompiledImage, Variable
from .compilation.names.signatures import Parameter, Signature
from .launch.loading import compile_image, compile_nvvm

__all__ = [
    "CacheInfo",
    "CacheWarning",
    "CompiledImage",
    "Parameter",
    "Signature",
    "Variable",
    "cache_info",
    "clear_cache",
    "compile_image",
    "compile_nvvm",
]
__dir__ = __all__.copy  # without private names and imports
