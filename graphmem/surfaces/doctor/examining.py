"""The whole of what is looked at. It reads only: what it writes goes to a temporary folder and is gone afterwards."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from graphmem.core.model import FileState
from graphmem.errors import GraphmemError
from graphmem.surfaces.doctor import clients, installation, round_trips, storage, trees
from graphmem.surfaces.doctor.findings import Examination, Finding, problem, reason_of
from graphmem.surfaces.opening import Session

_Found = TypeVar("_Found")


def examine(session: Session, source: Callable[[], str], *, quick: bool) -> Examination:
    """Look at everything; nothing of the user's is changed, and nothing is raised for what is wrong.

    source: returns where the path of the memory comes from. quick: without round trips.
    """
    try:
        temporary = tempfile.TemporaryDirectory(prefix="graphmem-doctor-", ignore_cleanup_errors=True)
    except OSError as error:
        remedy = "make room there, or name a folder that can be written in TMPDIR"
        return Examination((problem("temporary folder", reason_of(error), remedy),))
    with temporary as folder:
        place = round_trips.place_in(Path(folder))
        return Examination(tuple(_all(session, source, place, quick=quick)))


def _all(session: Session, source: Callable[[], str], place: round_trips.Place, *, quick: bool) -> Iterator[Finding]:
    yield from _tried("installation", installation.look())
    for found in _tried("files", storage.look(session, source)):
        if isinstance(found, FileState):
            yield from _tried("trees", trees.look(found))
        else:
            yield found
    yield from _tried("clients", clients.look(session, place.environ))
    if not quick:
        yield from _tried("round trips", round_trips.look(place))


def _tried(what: str, findings: Iterator[_Found]) -> Iterator[_Found | Finding]:
    """Yield findings; what stands in the way of looking on is the last one."""
    try:
        yield from findings
    except (OSError, GraphmemError) as error:
        place = getattr(error, "filename", None) or ""
        yield problem(what, f"{place}: {reason_of(error)}".removeprefix(": "), "check that it is there and may be read")
