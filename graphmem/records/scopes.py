"""Scopes: which project a folder is, what of the store a reader reaches, and what each scope holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from graphmem.core import model
from graphmem.projects import ID_DIGITS, Signs, is_one_folder, is_there, other_ids, project_id
from graphmem.store.lists import in_list
from graphmem.store.transaction import Transaction

USER = ""
EVERY_SCOPE = "all"
PROJECT_PREFIX = "project:"
SESSION_PREFIX = "session:"
# Tables of what is of a scope, with the column of the time it was written.
_SCOPED = {"relations": "recorded_at", "notes": "created_at", "sessions": "created_at", "incidents": "first_at"}


class _Known(NamedTuple):
    """A stored project. place: '' when only rows of it are left."""

    key: str
    label: str
    place: str


class Found(NamedTuple):
    """The project of a folder, and what is not stored of it yet. is_new: whether the project itself is not.

    unknown: aliases. moved: whether its place is another than the one that is stored.
    """

    project: model.Project
    is_new: bool
    moved: bool
    unknown: tuple[tuple[str, str], ...]

    @property
    def is_stored(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.is_new or self.moved or self.unknown)


def find_project(tx: Transaction, signs: Signs) -> Found:
    """Return the project that a folder is, a new one where nothing stored leads to one. Writes nothing.

    It is the one of the same folder, else of the same repository, else of the same remote, be that a URL or its folder,
    else one that was reached by the same path and whose folder is gone. A folder whose remotes are others than those of
    the project that was there holds another one: folders are used again, and what one project holds is not for the
    next. The path of a project, which is the remote of its local clones, tells nothing of that.
    """
    place = _storable(signs.place)
    unknown = _unknown(tx, signs)
    stranger, strange = None, set[str]()
    for known in _leads(tx, signs):
        stored = _stored_aliases(tx, known.key)
        paths = {value for scheme, value in stored if scheme == "path"}
        remotes = {value for scheme, value in stored if scheme == "remote"} - paths
        is_its_clone = _storable(signs.remote) in paths
        if remotes and signs.remotes and remotes.isdisjoint(signs.remotes) and not is_its_clone:
            if stranger is None:
                stranger, strange = known, remotes
            continue
        moved = not is_one_folder(known.place, place) and not is_there(known.place)
        is_clone = not moved and ("path", place) in unknown
        project = model.Project(
            known.key,
            _storable(signs.label) if moved else known.label,
            place if moved else known.place,
            tuple(sorted({*stored, *unknown})),
            signs.worktree,
            _remarks(known, place, moved=moved) if known.place and (moved or is_clone) else (),
        )
        return Found(project, is_new=False, moved=moved, unknown=unknown)
    key = _free_key(tx, signs.place)
    remarks: tuple[str, ...] = ()
    if stranger is not None and stranger.place == place:
        remarks = (
            f"{place} was that of project {stranger.key} and has another remote now, so it is another project, {key}; "
            f"if it is the same, keep the old remote beside the new one (git remote add was {min(strange)})",
        )
    project = model.Project(key, _storable(signs.label), place, unknown, signs.worktree, remarks)
    return Found(project, is_new=True, moved=False, unknown=unknown)


def _remarks(known: _Known, place: str, *, moved: bool) -> tuple[str, ...]:
    if moved:
        return (f"project {known.label} ({known.key}) is at {place} now and no longer at {known.place}",)
    return (
        f"{place} is another clone of project {known.label} ({known.key}) at {known.place}, and both have one memory; "
        "project_identity = 'folder' keeps them apart",
    )


def path_of_other(scheme: str, value: str, paths: Iterable[str]) -> str:
    """Return which of some paths has an id that another memory gave a project, or one that begins so; '' for none."""
    ids = ((path, own) for path in sorted(paths) if path for each, own in other_ids(path) if each == scheme)
    return next((path for path, own in ids if own.startswith(value) or value.startswith(own)), "")


def key_of_other(tx: Transaction, scheme: str, value: str) -> str:
    """Return the key of the project that another memory calls by an id, also of one that was never seen here.

    That id is mostly a hash of the path that our own keys are made of, so the folder will lead to what is under it.
    """
    return _led_to(tx, (scheme, value)) or PROJECT_PREFIX + value[:ID_DIGITS]


def store_project(tx: Transaction, found: Found, at: str) -> model.Project:
    """Write what is not stored yet of a project that was found in this same transaction."""
    project = found.project
    tx.execute(
        """INSERT INTO scopes(key, kind, label, place, created_at) VALUES (?, 'project', ?, ?, ?)
           ON CONFLICT (key) DO UPDATE SET label = excluded.label, place = excluded.place""",
        (project.key, project.label, project.place, at),
    )
    tx.executemany(
        """INSERT INTO scope_aliases(scheme, value, scope) VALUES (?, ?, ?)
           ON CONFLICT (scheme, value) DO UPDATE SET scope = excluded.scope""",
        [(scheme, value, project.key) for scheme, value in found.unknown],
    )
    return project


def knows_session(tx: Transaction, key: str) -> bool:
    """Tell whether the scope of a session is stored."""
    return tx.execute("SELECT 1 FROM scopes WHERE key = ?", (key,)).fetchone() is not None


def store_session(tx: Transaction, key: str, parent: str, at: str) -> None:
    """Make the scope of a session known, with its project; one that is known stays as it is."""
    tx.execute(
        """INSERT INTO scopes(key, kind, parent, created_at) VALUES (?, 'session', ?, ?)
           ON CONFLICT (key) DO NOTHING""",
        (key, parent, at),
    )


def needed(tx: Transaction, scopes: Sequence[str] | None) -> Sequence[str] | None:
    """Return the scopes that a reader has to be kept to, None where all that is stored is the user's own.

    Those that hold nothing are left out: thousands of names that nobody knows cost nothing further on.
    """
    if scopes is None:
        return None
    marks, wanted = in_list(scopes)
    rows = tx.execute(
        f"""SELECT key FROM scopes WHERE filled = 1 AND key IN ({marks})
            UNION ALL SELECT '' WHERE EXISTS (SELECT 1 FROM scopes WHERE filled = 1)""",
        wanted,
    )
    held = [key for (key,) in rows]
    return [key for key in held if key] if held else None


def unnoted(tx: Transaction) -> dict[str, str]:
    """Return the scopes that hold something and are not known to, each with the time of the first of it."""
    rows = " UNION ALL ".join(
        f"SELECT scope, {at} AS at FROM {table} WHERE scope <> ''" for table, at in _SCOPED.items()
    )
    return dict(
        tx.execute(
            f"""SELECT scope, MIN(at) FROM ({rows}) held
                WHERE scope NOT IN (SELECT key FROM scopes WHERE filled = 1) GROUP BY scope"""
        ).fetchall()
    )


def note(tx: Transaction, written: Mapping[str, str]) -> None:
    """Let scopes be known to hold something, each with the time of the first of it."""
    kinds = {PROJECT_PREFIX: "project", SESSION_PREFIX: "session"}
    tx.executemany(
        """INSERT INTO scopes(key, kind, filled, created_at) VALUES (?, ?, 1, ?)
           ON CONFLICT (key) DO UPDATE SET filled = 1""",
        [
            (scope, next((kind for prefix, kind in kinds.items() if scope.startswith(prefix)), "named"), at)
            for scope, at in written.items()
        ],
    )


def list_scopes(tx: Transaction, current: Sequence[str]) -> tuple[model.ScopeInfo, ...]:
    """Return all scopes: the user's own, then projects, named ones and sessions, each by label."""
    counts = {
        name: dict(tx.execute(f"SELECT scope, COUNT(*) FROM {table} WHERE {condition} GROUP BY scope").fetchall())
        for name, table, condition in (
            ("facts", "relations", "status = 'active'"),
            ("notes", "notes", "status <> 'forgotten'"),
            ("sessions", "sessions", "TRUE"),
        )
    }
    aliases: dict[str, list[tuple[str, str]]] = {}
    for scope, scheme, value in tx.execute("SELECT scope, scheme, value FROM scope_aliases ORDER BY scheme, value"):
        aliases.setdefault(scope, []).append((scheme, value))
    rows = tx.execute(
        """SELECT key, kind, label, place, parent FROM scopes
           ORDER BY kind = 'session', kind = 'named', label, key"""
    )
    return tuple(
        model.ScopeInfo(
            key,
            kind,
            label,
            place,
            parent,
            tuple(aliases.get(key, ())),
            facts=counts["facts"].get(key, 0),
            notes=counts["notes"].get(key, 0),
            sessions=counts["sessions"].get(key, 0),
            current=key == USER or key in current,
        )
        for key, kind, label, place, parent in itertools.chain([(USER, "user", "", "", "")], rows)
    )


def forget_scope(tx: Transaction, key: str) -> None:
    """Remove what is known of a scope beside what it holds: its folder, its label, its aliases, itself when empty."""
    tx.execute("DELETE FROM scope_aliases WHERE scope = ?", (key,))
    tx.execute("UPDATE scopes SET label = '', place = '' WHERE key = ?", (key,))
    holds = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE scope = ?1)" for table in _SCOPED)
    tx.execute(f"DELETE FROM scopes WHERE key = ?1 AND NOT ({holds})", (key,))
    tx.execute("UPDATE scopes SET parent = '' WHERE parent = ? AND parent NOT IN (SELECT key FROM scopes)", (key,))


def _leads(tx: Transaction, signs: Signs) -> Iterator[_Known]:
    """Yield the projects that a folder may be, the surest first."""
    place = _storable(signs.place)
    rows = tx.execute("SELECT key, label, place FROM scopes WHERE kind = 'project' ORDER BY created_at, key").fetchall()
    known = {key: _Known(key, label, at) for key, label, at in rows}
    own_key = PROJECT_PREFIX + project_id(signs.place)
    # Of several that lay here one after the other, the first has the key of the path.
    yield from sorted((each for each in known.values() if each.place == place), key=lambda each: each.key != own_key)
    # What is left of a project that was forgotten, or was written by who knew the key alone.
    yield from (each for each in known.values() if each.key == own_key and not each.place)
    # A clone of a folder has its path for a remote.
    for scheme, value in (("git", signs.common), ("remote", signs.remote), ("path", signs.remote)):
        led_to = value and _led_to(tx, (scheme, _storable(value)))
        if led_to:
            yield known[led_to]
        if scheme == "git":
            yield from (each for each in known.values() if each.place and is_one_folder(each.place, place))
    for spelling in signs.spellings:
        led_to = _led_to(tx, ("path", _storable(spelling)))
        if led_to and not is_there(known[led_to].place):
            yield known[led_to]


def _led_to(tx: Transaction, alias: tuple[str, str]) -> str | None:
    """Return the key of the project that an alias leads to."""
    row = tx.execute(
        """SELECT key FROM scope_aliases JOIN scopes ON key = scope AND kind = 'project'
           WHERE scheme = ? AND value = ?""",
        alias,
    ).fetchone()
    return None if row is None else str(row[0])


def _stored_aliases(tx: Transaction, key: str) -> list[tuple[str, str]]:
    return tx.execute("SELECT scheme, value FROM scope_aliases WHERE scope = ?", (key,)).fetchall()


def _unknown(tx: Transaction, signs: Signs) -> tuple[tuple[str, str], ...]:
    """Return the names of a project that its folder tells and that lead to none yet, each once.

    What other memories call a path is stored along with it, and made of no path that is: hashes take long to load.
    """
    paths = [path for path in signs.spellings if _led_to(tx, ("path", _storable(path))) is None]
    known = {*signs.spellings}.difference(paths)
    aliases = [
        *(("path", path) for path in paths),
        *(alias for path in (*signs.given, *paths) if path not in known for alias in other_ids(path)),
        *([("git", signs.common)] if signs.common else []),
        *([("remote", signs.remote)] if signs.remote else []),
    ]
    names = dict.fromkeys((scheme, _storable(value)) for scheme, value in aliases)
    return tuple(name for name in names if _led_to(tx, name) is None)


def _free_key(tx: Transaction, place: str) -> str:
    """Return the key of a new project: that of its path, else, where another one has it, of the path and a number."""
    paths = itertools.chain([place], (f"{place}\n{number}" for number in itertools.count(2)))
    keys = (PROJECT_PREFIX + project_id(path) for path in paths)
    return next(key for key in keys if not tx.execute("SELECT 1 FROM scopes WHERE key = ?", (key,)).fetchone())


def _storable(path: str) -> str:
    """Return a path as text that SQLite can hold: file names are bytes, and may be no UTF-8."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
