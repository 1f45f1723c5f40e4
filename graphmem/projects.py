"""What identifies a project: its folder, its git repository, its remote. Plain files are read, no program is run.

Layouts are those of gitrepository-layout(5), gitfile in gitglossary(7), and the syntax of git-config(1). What `include`
and `url.insteadOf` do is not looked at.
"""

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmem.core.addresses import refuse_server
from graphmem.core.keys import place_key
from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
    import urllib.parse as urls
else:
    hashlib = late("hashlib")
    urls = late("urllib.parse")

ID_DIGITS = 12
# Texts, since few of them are ever needed: `re` compiles and keeps those that are.
_WINDOWS = r"[A-Za-z]:[\\/]|\\\\"
_SCP = r"(?s)(?:[^@/:]+@)?(\[[^\]/]+\]|[^:/@\[\]]+):(?!//)(.*)"  # [user@]host:path
_LONGEST_FILE = 1 << 20  # bytes of what git keeps about a folder; a repository may hold anything
_SECTION = r"\[\s*([-.\w]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]"
_VARIABLE = r"(?s)([A-Za-z][-A-Za-z0-9]*)\s*(?:=(.*))?"


class Signs(NamedTuple):
    """What a folder tells of its project. Paths are absolute, links followed, '/' between their parts.

    place: the main working tree of its repository, which linked worktrees share, else the folder itself. root: the top
    of the working tree that it is in. worktree: the name of a linked worktree. common: the folder that holds the
    repository. remote: that of `origin`, remotes: all of them, see `remote_form`. spellings: how the root has been
    written. given: how the folder itself has been.
    """

    place: str
    root: str
    worktree: str
    common: str
    remote: str
    remotes: tuple[str, ...]
    spellings: tuple[str, ...]
    given: tuple[str, ...]

    @property
    def label(self) -> str:
        """What people call the project: the name of its folder."""
        return posixpath.basename(self.place) or self.place


def canonical_path(path: str) -> str:
    r"""Return an absolute path in one form: no doubled, dotted and trailing slashes, Windows paths in small letters.

    >>> canonical_path("/a//b/./c/"), canonical_path("D:\\X"), canonical_path("d:/x/")
    ('/a/b/c', 'd:/x', 'd:/x')
    """
    if re.match(_WINDOWS, path):
        network = path.startswith("\\\\")
        plain = posixpath.normpath("/" + path.replace("\\", "/").lstrip("/")).casefold()
        return "/" + plain if network else plain[1:]
    return posixpath.normpath("/" + path.lstrip("/"))


def project_id(path: str) -> str:
    r"""Return the id of the project at an absolute path: 12 hexadecimal digits of the SHA-256 of its canonical form.

    >>> project_id("/a/b"), project_id("D:\\X") == project_id("d:/X")
    ('662b7b62a798', True)
    """
    return _hash(canonical_path(path))


def other_ids(path: str) -> tuple[tuple[str, str], ...]:
    r"""Return the ids that other memories give to a project at an absolute path as it is written, each with its scheme.

    promem: opencode-promemory, which joins slashes but keeps one at the end. dsh: the beginning of the hash in the name
    of a ledger of dsh-memory-ledger.

    >>> other_ids("/a//b")
    (('promem', '662b7b62a798'), ('dsh', '13c7a6eeec2a'))
    """
    slashed = path.replace("\\", "/")
    joined = posixpath.normpath(slashed) + ("/" if slashed.endswith("/") and slashed.strip("/") else "")
    absolute = path.lower() if re.match(_WINDOWS, path) else path
    return ("promem", _hash(joined)), ("dsh", _hash(absolute))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:ID_DIGITS]


def remote_form(url: str) -> str:
    """Return the URL of a remote in one form however it is written: host and path, or a local path.

    Scheme, user, password, port, query and a final `.git` are dropped, the host is in small letters; '' for no URL.

    >>> remote_form("git@GitHub.com:ann/app.git"), remote_form("https://ann:s3cret@github.com:443/ann/app/")
    ('github.com/ann/app', 'github.com/ann/app')
    >>> remote_form("file:///srv/app.git"), remote_form("/srv/app")
    ('/srv/app', '/srv/app')
    """
    text = url.strip()
    if not text:
        return ""
    if re.match(_WINDOWS, text) or text.startswith(("/", "./", "../", "~")):
        host, path = "", text
    elif "://" in text:
        try:
            parts = urls.urlsplit(text)
            host = parts.hostname or ""
        except ValueError:
            return ""
        path = urls.unquote(parts.path)
    elif (match := re.fullmatch(_SCP, text)) is not None:
        host, path = match[1].strip("[]"), match[2]
    else:
        host, path = "", text
    path = path.rstrip("/\\")
    path = path.removesuffix(".git").rstrip("/\\")
    if not host:
        return canonical_path(path) if path.startswith("/") or re.match(_WINDOWS, path) else path
    return f"{host.casefold()}{posixpath.normpath('/' + path.lstrip('/'))}"


def is_one_folder(one: str, other: str) -> bool:
    """Tell whether two paths are one folder, also where the file system does not mind letter case and accents."""
    if one == other:
        return True
    if place_key(one) != place_key(other):
        return False
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def is_there(folder: str) -> bool:
    """Tell whether there is such a folder."""
    return os.path.isdir(folder)


def read_signs(folder: str | os.PathLike[str], *, whole_repository: bool) -> Signs:
    """Return what a folder, or one inside a working tree, tells of its project.

    whole_repository: whether worktrees and clones of a repository are one project; else each working tree is its own,
    and nothing is looked up but where it lies. Raises InvalidInput for what is no folder that can be read.
    """
    written, real = _folder(folder)
    found = next(_repositories(real), None)
    if found is None:
        return _signs(written, real, real)
    if not whole_repository:
        return _signs(written, real, found.root)
    return _signs(written, real, found.root, found)


def signs_of(folder: str, *, whole_repository: bool) -> Signs:
    """Return what a folder tells of its project, and of one that is not there (any more) what its path tells."""
    try:
        return read_signs(folder, whole_repository=whole_repository)
    except InvalidInput:
        return _signs(folder, folder, folder)


def working_tree(folder: str | os.PathLike[str]) -> str | None:
    """Return the top of the git working tree that a folder is in, None outside of any and for no folder."""
    try:
        _, real = _folder(folder)
    except InvalidInput:
        return None
    found = next(_repositories(real), None)
    return None if found is None else found.root


def git_user(common: str) -> str:
    """Return by what name git knows who works here: as the repository says, else the user's settings; '' for none.

    common: the folder that holds a repository, '' for none. A name is looked for first, then an address.
    """
    home = os.path.expanduser("~")
    own = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.join(home, ".config")
    files = [os.path.join(home, ".gitconfig"), os.path.join(own, "git", "config")]
    if common:
        files = [os.path.join(common, "config.worktree"), os.path.join(common, "config"), *files]
    told = [dict(read_config(_read(file))) for file in files]
    found = (settings.get(("user", "", name), "").strip() for name in ("name", "email") for settings in told)
    return next(filter(None, found), "")


def _folder(folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Return a folder as it was written, absolute, and its real path."""
    refuse_server("project", folder)
    text = os.fspath(folder) if isinstance(folder, str | os.PathLike) else folder
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise InvalidInput("project", folder, "give the path of a folder, or None for no project")
    written = os.path.expanduser(text)
    try:
        real = os.path.realpath(written, strict=True)
        is_folder = stat.S_ISDIR(os.stat(real).st_mode)
    except (OSError, UnicodeEncodeError) as error:
        reason = getattr(error, "strerror", None) or "no file name can hold these characters"
        raise InvalidInput("project", text, f"cannot be read ({reason}): name a folder that exists") from None
    if not is_folder:
        raise InvalidInput("project", text, "is a file: name the folder of the project")
    return (written if os.path.isabs(written) else os.path.abspath(written)), real


class _Repository(NamedTuple):
    """Where a working tree begins and which repository it is of. worktree: its name when it is a linked one."""

    root: str
    common: str
    worktree: str


def _repositories(folder: str) -> Iterator[_Repository]:
    """Yield the repositories that a real folder lies in, the innermost first."""
    place = folder
    while True:
        if (found := _repository_at(place)) is not None:
            yield found
        above = os.path.dirname(place)
        if above == place:
            return
        place = above


def _repository_at(place: str) -> _Repository | None:
    """Return the repository whose working tree begins at a folder, or that it is itself."""
    marker = os.path.join(place, ".git")
    if os.path.isdir(marker):
        git_folder = marker
    elif os.path.isfile(marker):
        git_folder = os.path.join(place, _read(marker).strip().removeprefix("gitdir:").strip())
    else:
        git_folder = place
    if not os.path.isfile(os.path.join(git_folder, "HEAD")):
        return None
    told = _read(os.path.join(git_folder, "commondir")).strip()
    common = os.path.realpath(os.path.join(git_folder, told))
    if not all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs")):
        return None
    if git_folder is place and os.path.basename(place) == ".git":  # within what git keeps, not in the working tree
        place = os.path.dirname(place)
    return _Repository(place, common, os.path.basename(os.path.realpath(git_folder)) if told else "")


def _signs(written: str, real: str, root: str, found: _Repository | None = None) -> Signs:
    place, common, remotes = root, "", dict[str, str]()
    if found is not None:
        settings = _settings(found.common)
        place, common = _main_tree(found, settings), found.common
        forms = {
            name: remote_form(_absolute(url, found.common))
            for (section, name, variable), url in settings.items()
            if (section, variable) == ("remote", "url")
        }
        remotes = {name: url for name, url in forms.items() if url}
    spelled = [place, root, *_spelled(written, real, root)]
    return Signs(
        place=canonical_path(place),
        root=canonical_path(root),
        worktree="" if found is None else found.worktree,
        common=common and canonical_path(common),
        remote=remotes.get("origin", ""),
        remotes=tuple(dict.fromkeys(remotes.values())),
        spellings=tuple(dict.fromkeys(canonical_path(each) for each in spelled)),
        given=tuple(dict.fromkeys((written, os.path.abspath(written), real, root, place))),
    )


def _spelled(written: str, real: str, root: str) -> Iterator[str]:
    """Yield how the root is written in the path of a folder inside it, which may lead over links."""
    place = os.path.abspath(written)
    if os.path.realpath(place) != real:  # '..' behind a link
        return
    drive, tail = os.path.splitdrive(place)
    place = resolved = drive + os.sep
    for name in filter(None, tail.split(os.sep)):
        place, inside = os.path.join(place, name), os.path.join(resolved, name)
        # To resolve every part of a path from its top would take the square of its length.
        resolved = os.path.realpath(inside) if _leads_elsewhere(inside) else inside
        if resolved == root:
            yield place


def _leads_elsewhere(path: str) -> bool:
    """Tell whether a path may resolve to another one within a folder that is resolved; Windows has many ways to."""
    return os.name == "nt" or os.path.islink(path)


def _main_tree(found: _Repository, settings: "dict[tuple[str, str, str], str]") -> str:
    """Return the folder that stands for a repository, the same for each of its working trees."""
    tree = settings.get(("core", "", "worktree"))
    if tree:  # as submodules have it
        return os.path.realpath(os.path.join(found.common, tree))
    if os.path.basename(found.common) == ".git":
        return os.path.dirname(found.common)
    is_bare = settings.get(("core", "", "bare"), "").lower() in ("true", "yes", "on", "1")
    return found.common if is_bare or found.worktree else found.root


def _absolute(url: str, common: str) -> str:
    """Return the URL of a remote; one that is a relative path is meant from the main working tree."""
    if not url.startswith(("./", "../")):
        return url
    return os.path.realpath(os.path.join(os.path.dirname(common), url))


def _settings(common: str) -> dict[tuple[str, str, str], str]:
    """Return what the configuration of a repository sets: section, subsection and variable to the first value."""
    found: dict[tuple[str, str, str], str] = {}
    for name in ("config.worktree", "config"):
        for key, value in read_config(_read(os.path.join(common, name))):
            found.setdefault(key, value)
    return found


def read_config(text: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    r"""Yield the variables of a git configuration, each as section, subsection and name, and its value.

    >>> list(read_config('[remote "origin"]\n\turl = "https://x.org/a" ; here\n[core]\n\tbare\n'))
    [(('remote', 'origin', 'url'), 'https://x.org/a'), (('core', '', 'bare'), 'true')]
    """
    section, subsection = "", ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        rest = line.strip()
        if (match := re.match(_SECTION, rest)) is not None:
            section, subsection = match[1].lower(), re.sub(r"\\(.)", r"\1", match[2] or "")
            rest = rest[match.end() :].strip()
        if (match := re.fullmatch(_VARIABLE, rest)) is not None:
            yield (section, subsection, match[1].lower()), "true" if match[2] is None else _value(match[2])


_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


def _value(text: str) -> str:
    """Return a value without its comment and quotes."""
    said: list[str] = []
    quoted = False
    kept = 0  # spaces at the end count only within quotes
    letters = iter(text.strip())
    for letter in letters:
        if letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            escaped = next(letters, "") if letter == "\\" else ""
            said.append(_ESCAPED.get(escaped, escaped) if escaped else letter)
        if quoted or not letter.isspace():
            kept = len(said)
    return "".join(said[:kept])


def _read(path: str) -> str:
    """Return the beginning of a file of git, '' where there is none that can be read, or none that git wrote."""
    if not os.path.isfile(path):  # a pipe would be waited for
        return ""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(_LONGEST_FILE)
    except OSError:
        return ""
    return "" if "\0" in text else text
