"""Scopes: the user's own, projects, sessions. See `graphmem.core.model`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Project:
    """The project that a memory was opened for. key: its scope, as it is stored.

    label: the name of its folder. place: that folder, the main working tree of its repository. aliases: every other
    name that leads to it, as scheme ('path', 'git', 'remote', 'promem', 'dsh') and value. worktree: the name of the
    linked git worktree that was opened, '' for none. remarks: what was found out when it was, such as that it moved.
    """

    key: str
    label: str
    place: str
    aliases: tuple[tuple[str, str], ...] = ()
    worktree: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeInfo:
    """A scope and how much it holds. key: as it is stored, '' for the user's own.

    kind: user, project, session or named. parent: the project of a session. label, place and aliases: as in `Project`.
    facts: that are active. notes: that are not forgotten. sessions: that were mirrored. current: whether the memory
    was opened for it; the user's own always is.
    """

    key: str
    kind: str
    label: str
    place: str
    parent: str
    aliases: tuple[tuple[str, str], ...]
    facts: int
    notes: int
    sessions: int
    current: bool
