"""What can go wrong with a registry."""

from __future__ import annotations

from contexture_sandbox.faults import OF_EVERY_SERVER, Fault, Faults


class RegistryFaults(Faults):
    """The faults of one registry."""

    def __init__(self) -> None:
        super().__init__((*OF_EVERY_SERVER, "page", "empty", "half"))

    def page(self, *, nth: int = 1, status: int = 404, times: int | None = None, path: str = "/") -> Fault:
        """Plans the page of a web server in which the registry is not running."""
        return self.plan(self.new("page", nth=nth, status=status, times=times, path=path))

    def empty(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Plans a well-formed response that contains nothing."""
        return self.plan(self.new("empty", nth=nth, times=times, path=path))

    def half(self, *, nth: int = 1, times: int | None = 1, path: str = "/") -> Fault:
        """Plans a well-formed response with the first half of what there is."""
        return self.plan(self.new("half", nth=nth, times=times, path=path))
