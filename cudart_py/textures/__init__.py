"""CUDA arrays, textures and surfaces, `cuda.textures`: memory that kernels access by coordinates."""

from .cuda_array import CudaArray
from .surface import Surface
from .texture import Texture, TextureOptions

__all__ = ["CudaArray", "Surface", "Texture", "TextureOptions"]
__dir__ = __all__.copy  # without private names and imports
