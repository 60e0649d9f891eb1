"""Names that a package offers and loads from its modules when they are first requested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def load_on_request(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package.

    Args:
        package: the package's name.
        modules: modules of the package with the names that they offer, separated by spaces.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{module_of[name]}"), name)

    return load
