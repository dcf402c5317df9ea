"""The version of this package, which the build takes from here."""

__all__ = ["__version__"]

__version__ = "0.2.0.dev0"
