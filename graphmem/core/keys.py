"""One canonical form for every scene key, feature key and entity name.

All keys are made here, on the writing side and on the reading side alike, so that two spellings of one scene cannot
become two scenes. A normalised key is a fixed point: normalising it again changes nothing. Whatever the form has to
drop from a name is kept as eight hex digits of its SHA-256, so that different people stay different people.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from graphmem.errors import InvalidInput
from graphmem.late import late

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late("hashlib")

MAX_KEY_BYTES = 96
MAX_NAME_CHARACTERS = 50
MAX_KIND_BYTES = 32
MAX_SLUG_BYTES = 80
AUTO_PREFIX = "auto:"
FEATURE_KINDS = frozenset({"chan", "peer", "peer_group", "tool", "topic", "part"})
PERSON_KINDS = frozenset({"peer", "peer_group"})

_HASH_DIGITS = 8
# A value that spells a further feature: joined to a label, it could be read as two.
_LOOKS_LIKE_TWO = re.compile(f"_(?:{'|'.join(sorted(FEATURE_KINDS))}):")
_CUT_BYTES = MAX_KEY_BYTES - 1 - _HASH_DIGITS

# Default_Ignorable_Code_Point of Unicode 16, DerivedCoreProperties.txt; it covers all Bidi_Control characters. As the
# inside of a class of a regular expression.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_WHITE = re.compile(r"\s+")
_CHINESE = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
_BESIDE_CHINESE = f"(?<={_CHINESE}) | (?={_CHINESE})"
# What Windows takes for a device, whatever follows a dot; see "Naming Files, Paths, and Namespaces" of Microsoft.
_DEVICE = r"(?:con|prn|aux|nul|conin|conout|(?:com|lpt)[0-9])(?:\..*)?"
# ASCII keys that are fixed points already: most keys met in practice, at a tenth of the cost.
_PLAIN_KEY = re.compile(r"[a-z0-9:-]+(?:[._/][a-z0-9:-]+)*")


def visible(text: str) -> str:
    """Drop the characters that cannot be seen.

    >>> visible("bo\\u00adb")
    'bob'
    """
    return _INVISIBLE.sub("", text)


def fold(text: str) -> str:
    """Drop invisible characters and apply NFKC and casefold until nothing changes, then trim.

    >>> fold(" ＱＱ\\u200b ")
    'qq'
    """
    if text.isascii():
        return text.casefold().strip()
    while True:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible(text)).casefold())
        if folded == text:
            return folded.strip()
        text = folded


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]


def _is_word(character: str) -> bool:
    # Ideographs up to Extension H by range: Python 3.11 does not know the latest, and one file has one form of a key.
    return unicodedata.category(character)[0] in "LMN" or "\U00020000" <= character <= "\U000323af"


def _keep(folded: str) -> str:
    """Letters, marks, numbers and `:` `-` `.`; anything else is one `_`."""
    kept = "".join(c if c in ":-." or _is_word(c) else "_" for c in folded)
    return re.sub(r"\.+", ".", re.sub(r"_+", "_", kept)).strip("_")


def _with_digest(kept: str, source: str) -> str:
    return f"{kept.rstrip('._')}.{_digest(source)}"


def _cut_bytes(text: str, most: int) -> str:
    """Shorten to at most so many bytes of UTF-8, at a character border."""
    return text.encode()[:most].decode("utf-8", "ignore")


def _cut(key: str) -> str:
    """Shorten to 96 bytes at a character border; the hash keeps two long keys two."""
    return key if len(key.encode()) <= MAX_KEY_BYTES else _with_digest(_cut_bytes(key, _CUT_BYTES), key)


def _segment(folded: str) -> str:
    """The normal form of one folded segment; a `/` inside it is a lost character, not a separator."""
    kept = _keep(folded)
    kind, colon, value = kept.partition(":")
    lost = folded.partition(":")[2] if colon else folded
    if not colon:
        kind, value = "", kept
    vanished = not value and lost.strip()
    changed = colon and kind in PERSON_KINDS and value != _WHITE.sub("_", lost)
    if vanished or changed:
        kept = kind + colon + _with_digest(value, lost.strip())
    return _cut(kept)


def normalize_key(text: str) -> str:
    """Return the canonical form of a scene key, at most 96 bytes; '' when nothing is left of it.

    Raises InvalidInput when the key is no text, or so long that it would lose the prefix of its own parent.

    >>> normalize_key("chan:QQ /  peer:1")
    'chan:qq/peer:1'
    >>> normalize_key("auto:chan:qq+part:morning")
    'auto:chan:qq_part:morning'
    >>> normalize_key("///")
    ''
    """
    if not isinstance(text, str):
        raise InvalidInput("key", text, "give a scene key as text, such as 'chan:qq'")
    if len(text) <= MAX_KEY_BYTES and _PLAIN_KEY.fullmatch(text):
        return text
    segments = [_segment(folded) for part in text.strip().split("/") if (folded := fold(part))]
    key = "/".join(segments)
    if len(key.encode()) <= MAX_KEY_BYTES:
        return key
    short = _cut(key)
    parent = "/".join(segments[:-1])
    if parent and not short.startswith(parent + "/"):
        raise InvalidInput("key", text, f"longer than {MAX_KEY_BYTES} bytes and no room for its last part; shorten it")
    return short


def is_canonical(key: str) -> bool:
    """Tell whether a key is its own canonical form.

    >>> is_canonical("chan:qq"), is_canonical("chan:QQ")
    (True, False)
    """
    try:
        return normalize_key(key) == key
    except InvalidInput:
        return False


def require_key(text: str, argument: str = "key") -> str:
    """Normalise a key that must name something; raise InvalidInput naming the argument when nothing is left."""
    key = normalize_key(text)
    if not key:
        raise InvalidInput(argument, text, "no scene key is left of it; give one such as 'chan:qq'")
    for segment in key.split("/"):
        kind, colon, value = segment.partition(":")
        # An empty name in `chan:{name}` would make one scene for everybody.
        if colon and not value and kind in FEATURE_KINDS:
            raise InvalidInput(argument, text, f"{segment} names nothing; put a name behind it")
    return key


def key_list(keys: str | Iterable[str], argument: str = "scenes") -> tuple[str, ...]:
    """Normalise one key or several: blanks dropped, repeats dropped, order kept.

    >>> key_list(["chan:QQ", "", "chan:qq", "auto:a"])
    ('chan:qq', 'auto:a')
    """
    return tuple(dict.fromkeys(require_key(key, argument) for key in text_list(keys, argument) if key.strip()))


def text_list(values: str | Iterable[str], argument: str) -> list[str]:
    """Return one text or several as a list; raise InvalidInput naming the argument for anything else.

    >>> text_list("a", "topics")
    ['a']
    """
    if isinstance(values, str):
        return [values]
    reason = "give a text or a list of texts"
    if isinstance(values, Mapping):  # its keys would be taken
        raise InvalidInput(argument, values, reason)
    try:
        found = list(values)
    except TypeError:
        raise InvalidInput(argument, values, reason) from None
    for value in found:
        if not isinstance(value, str):
            raise InvalidInput(argument, value, reason)
    return found


def require_texts(**values: object) -> None:
    """Raise InvalidInput naming the first argument whose value is no text."""
    for argument, value in values.items():
        if not isinstance(value, str):
            raise InvalidInput(argument, value, "give a text")


def _require_text(argument: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidInput(argument, value, "the parts of a feature are texts: Feature('chan', 'qq')")


def kind_key(kind: str) -> str:
    """Return the normal form of a feature kind: no `:` and no `/`, at most 32 bytes, '' when blank."""
    _require_text("kind", kind)
    folded = fold(kind)
    if ":" in folded or "/" in folded:
        raise InvalidInput("kind", kind, "a kind holds no ':' and no '/'; put them into the value")
    key = _segment(folded) if folded else ""
    if len(key.encode()) > MAX_KIND_BYTES:
        raise InvalidInput("kind", kind, f"longer than {MAX_KIND_BYTES} bytes; shorten it")
    return key


def feature_key(kind: str, value: str) -> str:
    """Return `kind:value` as one segment, '' when either part is blank. A kind holds no `:` and no `/`.

    >>> feature_key("peer", "Group 1")
    'peer:group_1'
    >>> feature_key("topic", "a/b")
    'topic:a_b'
    """
    _require_text("kind", kind)
    _require_text("value", value)
    return _feature_key(kind, value)


@functools.lru_cache(maxsize=1 << 14)
def _feature_key(kind: str, value: str) -> str:
    name, folded = kind_key(kind), fold(value)
    return _segment(f"{name}:{folded}") if name and folded else ""


def channel_key(source: str) -> str:
    """Return the scene key of a channel, '' for a blank source.

    >>> channel_key("QQ")
    'chan:qq'
    """
    return feature_key("chan", source)


def tool_key(name: str) -> str:
    """Return the scene key of a tool, '' for a blank name.

    >>> tool_key("qq_get_message")
    'tool:qq_get_message'
    """
    return feature_key("tool", name)


def features_of_key(key: str) -> tuple[str, ...]:
    """Return the feature keys that a scene key spells out; segments of unknown kind give none.

    >>> features_of_key("chan:qq/peer:group_1027")
    ('chan:qq', 'peer:group_1027')
    """
    segments = (segment.partition(":") for segment in normalize_key(key).split("/"))
    return tuple(
        dict.fromkeys(kind + colon + value for kind, colon, value in segments if kind in FEATURE_KINDS and value)
    )


def kind_of(feature: str) -> str:
    """Return the kind of a feature key.

    >>> kind_of("peer:group:1")
    'peer'
    """
    return feature.partition(":")[0]


def layered_key(parent: str, last: str) -> str:
    """Return `parent/last`, or `last` alone where the joined key would be refused."""
    if not parent:
        return last
    try:
        return normalize_key(f"{parent}/{last}")
    except InvalidInput:
        return last


def names_peer(key: str, peer: str) -> bool:
    """Tell whether a normalised scene key names a person, whose feature key is `peer`.

    >>> names_peer("chan:qq/peer:boss", "peer:boss")
    True
    >>> names_peer("chan:qq/peer:boss2", "peer:boss")
    False
    """
    parent, slash, _ = key.rpartition("/")
    return peer in key.split("/") or bool(slash and key == layered_key(parent, peer))


def auto_key(label: str) -> str:
    """Return the key of the scene that grows under a label."""
    return normalize_key(AUTO_PREFIX + label)


def suffixed_key(base: str, number: int) -> str:
    """Return `base.N` cut so that the whole fits into 96 bytes.

    >>> suffixed_key("auto:chan:qq", 2)
    'auto:chan:qq.2'
    """
    suffix = f".{number}"
    return _cut_bytes(base, MAX_KEY_BYTES - len(suffix)).rstrip("._") + suffix


def join_label(parts: list[str]) -> str:
    """Join normalised feature keys to one label, itself a normalised key; different lists give different labels.

    >>> join_label(["peer:boss", "chan:qq"])
    'peer:boss_chan:qq'
    >>> join_label(["peer:boss_chan:qq"])
    'peer:boss_chan:qq.5adf72e0'
    """
    label = "_".join(parts)
    if any(_LOOKS_LIKE_TWO.search(part) for part in parts):
        label = _with_digest(label, "/".join(parts))
    return normalize_key(label)


def range_below(key: str) -> tuple[str, str]:
    """Return the half-open range of keys below a normalised key: all that start with `key/`.

    >>> range_below("chan:a_b")
    ('chan:a_b/', 'chan:a_b0')
    """
    return key + "/", key + "0"


def place_key(path: str) -> str:
    """Return what two paths share that are one file on some system.

    >>> place_key("facts/Ä.md") == place_key("facts/a\\u0308.md")
    True
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def origin_of(key: str) -> str:
    """Return the origin of a scene that a write brings into being."""
    return "emergent" if key.startswith(AUTO_PREFIX) else "declared"


def entity_key(name: str) -> str:
    """Return the canonical form of an entity name: punctuation and emoji stay, spelling variants do not.

    >>> entity_key(" ＵＳＢ  集线器 ")
    'usb 集线器'
    >>> entity_key("C#") != entity_key("C")
    True
    """
    return _WHITE.sub(" ", fold(name))


def title_key(title: str) -> str:
    """Return the canonical form of the title of a note: spaces beside Chinese and a full stop say nothing either.

    >>> {title_key(title) for title in ("用pnpm部署", "用 pnpm 部署", "用PNPM部署。")}, title_key("Go!"), title_key("!")
    ({'用pnpm部署'}, 'go', '!')
    """
    key = entity_key(title)
    return re.sub(_BESIDE_CHINESE, "", key).rstrip(" .!。！…") or key


def slug(title: str) -> str:
    """Return a name for the file of a title: letters, marks and numbers of every script, `.`, `_` and `-`.

    It is safe on every system and its own slug; white space becomes `-`. It ends in eight hex digits of the hash of the
    title where something else is lost, where it is cut to 80 bytes, and where Windows knows it as a device. So titles
    that differ in more than case, width and white space have different slugs, unless one of them is spelled as a slug.

    >>> slug("Deploy with pnpm"), slug("部署清单")
    ('deploy-with-pnpm', '部署清单')
    >>> slug("C++"), slug("C#"), slug("CON")
    ('c-cedb1bac', 'c-951a4d36', 'con-1143da2b')
    """
    folded = entity_key(title)
    kept = "".join(c if c in "-._" or _is_word(c) else "-" for c in folded)
    name = re.sub(r"[-.]+", lambda run: "-" if "-" in run[0] else ".", kept).strip("-.")
    # A hyphen of its own beside white space that becomes one: `build-x7 fails` is not `build x7-fails`.
    lost = name != folded.replace(" ", "-") or (" " in folded and "-" in folded)
    if re.fullmatch(_DEVICE, name):
        name, lost = name.replace(".", "-"), True
    if not lost and name and len(name.encode()) <= MAX_SLUG_BYTES:
        return name
    return f"{_cut_bytes(name, MAX_SLUG_BYTES - 1 - _HASH_DIGITS).rstrip('-.')}-{_digest(folded)}".lstrip("-")


def name_problem(name: object) -> str:
    """Return why a name cannot be an entity, '' when it can.

    >>> name_problem("x" * 51)
    'a name has at most 50 characters, this one has 51'
    """
    if not isinstance(name, str):
        return f"a name is text, not {type(name).__name__}"
    if len(name.strip()) > MAX_NAME_CHARACTERS:
        return f"a name has at most {MAX_NAME_CHARACTERS} characters, this one has {len(name.strip())}"
    if not entity_key(name):
        return "nothing that can be seen is left of the name"
    return ""


def clean_text(text: str) -> str:
    """Replace NUL and halves of surrogate pairs, which UTF-8 and SQLite cannot hold, by U+FFFD.

    >>> clean_text("ok \\ud83d")
    'ok \\ufffd'
    """
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
