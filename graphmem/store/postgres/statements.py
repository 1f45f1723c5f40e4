"""The one place where statements are made PostgreSQL's: parameters, empty lists, no hints for SQLite's planner."""

import functools
import re

# What stands between quotes is left alone.
_PARTS = re.compile(
    r"""(?P<text>'(?:[^']|'')*'|"[^"]*")
      | \?(?P<number>\d+)?
      | (?P<hint>\bINDEXED\ BY\ \w+|\bNOT\ INDEXED\b|\bAS\ MATERIALIZED\b)
      | \bCROSS\ (?=JOIN\s+(?P<joined>\w+(?:\s+(?!ON\b)\w+)?)\s+ON\b)
      | (?P<none>\bNOT\ IN\ \(\))
      | (?P<any>\bIN\ \(\))
      | (?<=[\s(,])\+(?=[a-z_]+\.)""",
    re.VERBOSE,
)


@functools.lru_cache(4096)
def translated(statement: str) -> str:
    """Return a statement with numbered parameters, and without what only SQLite's planner is told.

    >>> translated("SELECT a FROM t INDEXED BY i CROSS JOIN u ON u.id = t.id WHERE b = ? AND c <> '?' AND d = ?")
    "SELECT a FROM t  JOIN u ON u.id = t.id WHERE b = $1 AND c <> '?' AND d = $2"
    >>> translated("SELECT a FROM t WHERE b IN () OR c NOT IN ()")
    "SELECT a FROM t WHERE b = ANY ('{}') OR c <> ALL ('{}')"
    """
    count = 0

    def part(found: re.Match[str]) -> str:
        nonlocal count
        whole = found.group()
        if found["text"] is not None:
            return whole
        if whole.startswith("?"):
            if found["number"]:
                return f"${found['number']}"
            count += 1
            return f"${count}"
        if found["any"] or found["none"]:
            return "<> ALL ('{}')" if found["none"] else "= ANY ('{}')"
        return "AS" if whole == "AS MATERIALIZED" else ""

    return _PARTS.sub(part, statement)
