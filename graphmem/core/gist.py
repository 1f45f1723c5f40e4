"""What the sentences of a session are good for, told by rules in English and Chinese: decided, exact, open, or filler.

The rules err towards silence: a sentence that none of them knows is plain, one that greets, thanks or only announces is
filler. Nothing here writes a word of its own; every sentence is a run of what was said.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from graphmem.core import reminders
from graphmem.core import standing_en as english
from graphmem.core import standing_zh as chinese
from graphmem.core.failures import FILE_ENDINGS
from graphmem.core.tokens import is_stop_token, is_stop_word, tokens_of

Kind = Literal["decision", "open", "question", "exact", "plain", "filler"]

# Two lines of a display of a hundred columns.
MOST_COLUMNS = 200
_MOST_CHARACTERS = 2_000  # of a line that is looked at: what has no end in them is data, and no sentence
# Fewer words that carry content say nothing that would be missed.
_LEAST_WORDS = 3

# ---- sentences

# What stands in a message and is not said in it: code, quotes of others, headings, tables, markup, diffs, logs.
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_NOT_SAID = re.compile(
    r"\s*(?:[>|<{}]|\#{1,6}\s|\$\s|@@|\+\+\+|---|===|\d+\s*\||\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|at\s\S+\s?\(|File\s\")"
)
# What would be read as the form of a checkpoint, and not as something that was said.
_FORM = re.compile(r"^\s*(?:#{1,6}\s|<[!/a-z])|<!--|-->|\bCHECKPOINT_DONE\b|\bgraphmem:writer\b")
_LIST_MARK = re.compile(r"\A\s*(?:(?:[-*•+]|\d{1,3}[.)]|[(（]\d{1,3}[)）])\s+|\d{1,3}、\s*)+")
_TASK = re.compile(r"\[([ xX])\]\s+")
_INLINE_MARK = re.compile(r"(?<![^\s:：;；,，。.])(\d{1,2})[.)、）](?!\d)\s*(?=\S)")
_LONGEST_HEADING = 60  # columns
_OPEN_HEADING = re.compile(
    r"\b(?:open|left|remaining|outstanding|pending|unresolved|to-?\s?do|next(?:\ssteps?)?|still|follow[- ]?ups?)\b"
    r"|还没|尚未|未完成|未决|待办|待定|剩下|剩余|遗留|下一步|后续",
    re.IGNORECASE,
)
_DECISION_HEADING = re.compile(r"\b(?:decided|decisions?|agreed)\b|决定|决议|定了|商定|约定|结论", re.IGNORECASE)
_END = re.compile(
    r"(?<=[。！？])(?![。！？!?”’」』\"')）*])|(?<=[.;；…!?])(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|vs|No)\.)"
    r"(?<!\b(?:Mrs|etc)\.)(?<!\b[ei]\.[ge]\.)(?=\s)"
)
_OPENING = re.compile(
    r"""\A(?:
      (?:(?:wow|whoa|oh|aw+|yeah|yep|yup|hi|hey|hello|thanks)(?:[ ][\w'-]+)?|ah|well|so|ok|okay|sure|right|cool|great|
         awesome|nice|haha+|lol|hm+|gosh|anyway|definitely|absolutely|totally|exactly|by[ ]the[ ]way|btw|thank[ ]you)
         (?:,\s+|\s+[-–—]\s+)
    | (?:好的?|嗯+|哦+|噢|啊|哈+|对了|对|是的|行|没问题|谢谢你?|顺便(?:说一下)?)[，,~～\s]+
    )+(?=\S)""",
    re.VERBOSE | re.IGNORECASE,
)
# Where a sentence that is too long may be cut.
_BORDER = re.compile(r"(?<=[,;:，、；：])|(?<=\s)")
_CUT = "…"

# ---- kinds

_VALUE = re.compile(
    r"""
      https?://[^\s<>"'`，。；！？、（）]+ | [\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+
    | (?<![A-Za-z0-9])[A-Za-z]?[-+$€£¥#]?\d[A-Za-z0-9_.,:/%°+-]*
    | [零一二三四五六七八九十百千万两]+(?:年|个月|月份?|[日号]|点|块|元|岁|%|倍)
    """,
    re.VERBOSE,
)
_NAME = re.compile(
    r"""
      `[^`\n]{1,80}` | (?<=[\w,;)]\s)(?!I\b)[A-Z][\w'-]*
    | (?<![A-Za-z0-9_])(?:[A-Za-z][A-Za-z0-9]{0,40}_[A-Za-z0-9_]+|[a-z]{1,40}[A-Z][A-Za-z0-9]*
        |[A-Z][a-z0-9]{1,40}[A-Z][A-Za-z0-9]*|[A-Z]{2}[A-Z0-9]*(?![a-z]))
    | (?<=[\u3400-\u9fff])[ ]?[A-Za-z][A-Za-z0-9.+#_-]*                  # a Latin word beside Chinese ones
    | (?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9.+#_-]{0,64}(?=[ ]?[\u3400-\u9fff])
    """,
    re.VERBOSE,
)
# A short sentence that begins so, and one that is nothing but that.
_LONGEST_FILLER = 80
_FILLER = re.compile(
    r"""(?:
      (?:hi|hey|hello|hiya|howdy|yo|good\s(?:morning|afternoon|evening|night|day)|bye|goodbye|welcome\s(?:back|to)|cheers|congrat\w*|
         thanks?(?!\sto\b)|thank\syou|thx|many\sthanks|you'?re\swelcome|no\s(?:problem|worries)|my\spleasure|sorry\b|
         see\syou|take\scare|have\sa\s(?:great|good|nice|lovely|wonderful|safe)|talk\s(?:to\syou\s)?(?:soon|later)|(?:so\s)?(?:good|great|nice|glad|lovely)\sto\s
         (?:see|hear|meet|talk)|how\s(?:are|have|is|'?s)\b.{0,20}\b(?:you|going|been|things|everything)|
         what'?s\s(?:up|new)|what\sabout\syou|(?:great|good|nice)\s(?:question|point|idea|job|work|one)|keep\s(?:it\sup|up\sthe)|
         that(?:'s|\sis)\s(?:so\s|really\s|very\s)?(?:great|good|awesome|amazing|cool|nice|wonderful|fantastic|true|right|
         fine|ok|okay|correct|perfect)|(?:i\s)?(?:hope|wish)\s(?:this|that|it|you)\b|let\sme\sknow|feel\sfree|
         happy\sto\shelp|glad\s(?:i|you|it|that)|(?:is\sthere\s)?anything\selse|
         (?:now\s)?let\sme\s(?:check|look|see|take|start|first|read|try|think|help|know|run|search|find)|
         i'?ll\s(?:now\b|first\b|start\b|check\b|look\b|take\sa\slook|begin\b)|can'?t\swait|i\sappreciate)\b
    | (?:你好|您好|大家好|早上好|早安|下午好|晚上好|晚安|嗨|谢谢|多谢|感谢|不客气|不用谢|再见|拜拜|没关系|辛苦了?|哈哈|
         太好了|太棒了|真棒|还有(?:什么|其他|别的)(?:问题|需要|事)|有什么(?:可以|能|需要)帮|希望(?:对你|这|能)|
         让我(?:先|来|看|检查|想)|我来(?:看|帮|检查)|我(?:先|再)?(?:看看|看一下|检查一下)|如果(?:还)?有(?:其他|任何|什么)?(?:问题|疑问|需要))
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_ONLY_FILLER = re.compile(
    r"(?:ok(?:ay)?|yes|no|sure(?:\sthing)?|done|got\sit|will\sdo|makes\ssense|of\scourse|certainly|sounds\s\w+|go\sahead|"
    r"continue|please(?:\s(?:do|continue|go\sahead))?|"
    r"(?:好|行|对|可以|继续|收到|明白|了解|知道|没问题|嗯|哦|是|不错|加油|请)+(?:的|了|呀|滴|吧|啊|哈|继续)*)\W*",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？][\"'”’」』)）*\s]*$")
# Of both the English is begun at words only, which spares most of the time.
_OPEN = re.compile(
    r"""
      ^\[\s\]
    | \b(?:
        (?:to-?do|fixme|tbd|wip)\b(?!\s?(?:list|app)) | to\sbe\s(?:decided|determined|discussed|confirmed|done)\b
      | still\s(?:need|needs|have|has|must|open|unclear|unresolved|missing|pending|unknown|undecided|broken|fails?|
          failing)\b
      | remains?\s(?:to\b|open|unclear|unresolved|unknown) | open\s(?:question|issue|point|item|task)s?\b | unresolved\b
      | (?:not|\w+n't)\s(?:yet\s)?(?:been\s)?(?:decided|settled|resolved|figured|implemented|tested|finished)\b
      | next\ssteps?\b | needs?\s(?:investigation|clarification|a\sdecision|follow[- ]?up|to\sbe\s\w+ed)\b
      | (?:blocked\s(?:by|on)|waiting\s(?:for|on)|undecided|don't\sknow\syet|do\snot\sknow\syet)\b
      )
    | 待办|待定|待确认|待解决|待讨论|待处理|有待|尚未|尚不|悬而未决|遗留|未解决|未完成
    | 还(?:没有?|未)(?:有)?(?:决定|确定|解决|完成|做|实现|修|定|测|想好|弄清|验证|写|部署|上线)
    | 没(?:有)?(?:解决|决定|定下) | 还(?:需要|需|得|差|缺|要(?!是|好|么))
    | 下一步|后续(?:再|需|要) | (?:回头|之后|以后|稍后|晚点|改天)再
    | 不确定(?:是否|要不要|该|怎么)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DECISION = re.compile(
    r"""
      \b(?:
        (?:we|i|they|you|he|she|team)(?:'ve|\shave|\shas|'d|\shad)?\s(?:\w+\s)?(?:decided|agreed\s(?:to|on|that|with\sthe)|
          settled\son|opted|chose|chosen|concluded|committed\sto)\b
      | (?:decided|agreed)\s(?:to|on|that|against)\b | the\s(?:final\s)?(?:decision|verdict|choice)\s(?:is|was)\b
      | decision\s?[:：] | made\s(?:up\smy\smind|(?:a|the|our|my)\sdecision)\b | settled\son\b
      | let(?:'s|\sus)\s(?:go\swith|use|stick\s(?:to|with)|switch|drop|stay\s(?:on|with)|adopt|move\sto|not\b|
          keep\s(?:the|it|using)\b)
      | (?:we|i)(?:'ll|\swill|\sshall|'re\sgoing\sto|'m\sgoing\sto|\sare\sgoing\sto|\sam\sgoing\sto)\s
          (?:only\s|just\s)?(?:use|go\swith|stick\s(?:to|with)|switch|adopt|drop|migrate|stay\s(?:on|with)|move\sto|
          replace|keep\s(?:the|using)\b)
      | switch(?:ed|ing)\s(?:\w+\s)?(?:to|from)\b
      | (?:use|used|using|chose|picked?)\b.{1,200}?\b(?:instead\sof|rather\sthan)\b
      )
    | ^(?:(?:we|i)(?:'re|'m|\sare|\sam)\s)?going\swith\b
    | (?:决定|敲定|选定|拍板|商定|约定|达成一致|说好)(?!性|权|于|因|论)
    | 定(?:下来|为|成) | (?:最终|最后|还是)(?:选|用|采用|定)
    | (?:就|统一|一律|全部)(?:用|按|选|采用|定|改) | 改(?:用|成|为|走) | (?:采用|换成|选用|弃用|改回)(?!了?吗)
    | 不再(?:用|使用|支持|维护) | 用.{1,20}(?:而不是|代替|替代|替换) | (?:我们|咱们)(?:以后|今后)?(?:都|就|还是|先)?用
    """,
    re.VERBOSE | re.IGNORECASE,
)
_IMAGINED = re.compile(r"(?:if|unless|suppose|imagine|what\sif)\b|如果|假如|要是|假设|万一", re.IGNORECASE)
# What holds without exception; who speaks of a habit of their own makes no rule.
_ABSOLUTE = re.compile(
    r"\b(?:always|never|must(?:n't)?|forbidden|prohibited|under\sno\scircumstances|without\sexception)\b"
    r"|必须|必需|禁止|严禁|永远|绝不|决不|绝对不|一律|务必|不准|不许|不得|切勿",
    re.IGNORECASE,
)
_OF_ONESELF = re.compile(
    r"\b(?:i|i'm|i've|my)\b[^,;:]*\b(?:always|never|must)\b|我(?!们)[^，。；]{0,4}(?:永远|必须|绝不|从不)", re.I
)

_SETTLED = re.compile(
    r"\b(?:we|i)(?:'ve|\shave)?\s(?:(?:just|finally|now|all|both)\s)?(?:decided\s(?:to|on|that|against)|agreed\s(?:to|on|that)|"
    r"settled\son|chose|chosen)\b|\b(?:the|our)\s(?:final\s)?decision\sis\b|^decision\s?:|"
    r"^(?!他|她|它|老板|客户|同事|领导|有人).{0,16}(?:决定|敲定|选定|拍板|商定|约定|达成一致|定下来|定为)(?!性|权|于|因|论|吗)",
    re.IGNORECASE,
)

# ---- files

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://\S+|[\w.+-]{1,64}@\S+", re.IGNORECASE)
# A path begins with a name in ASCII: Chinese before it is the sentence that names it.
_FILE = re.compile(
    rf"""(?<![A-Za-z0-9_@.+\\/:$%-])(?:
      (?:[A-Za-z]:[\\/]|~?/|\.{{1,2}}[\\/])?(?:[A-Za-z0-9_@.+-]{{1,80}}[\\/])(?:[\w@.+-]{{1,80}}[\\/]){{0,20}}
        [\w@.+-]{{0,80}}\.[A-Za-z][A-Za-z0-9]{{0,7}}
    | (?:[A-Za-z]:[\\/]|~?/|\.{{1,2}}[\\/])(?:[A-Za-z0-9_@.+-]{{1,80}}[\\/]){{1,20}}[A-Za-z0-9_@+-]{{1,80}}
    | [A-Za-z0-9_@.+-]{{1,80}}\.(?:{FILE_ENDINGS.replace(" ", "|")})
    )(?![A-Za-z0-9_/\\])""",
    re.VERBOSE,
)
_PRODUCT = re.compile(
    r"(?:node|vue|react|next|nuxt|express|three|d3|chart|socket|discord|backbone|ember)\.js", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it was said, in one line of at most 200 columns. place: which of its text it is, from 0 on.

    words: the tokens that carry content. telling: those of them that belong to a name or an exact value.
    """

    text: str
    place: int
    kind: Kind
    words: frozenset[str]
    telling: frozenset[str]


def sentences_of(text: str) -> list[Sentence]:
    """Return the sentences of a message in order, without what is quoted, code, markup or a log in it.

    What only opens a sentence ("Well, ", "好的，") is left out, and so is what it repeats. A sentence of more than 200
    columns is cut at a border and ends in an ellipsis. Takes time linear in the text.

    >>> [(one.kind, one.text) for one in sentences_of("Hi! Well, we decided to use Redis. It listens on port 6380.")]
    [('filler', 'Hi!'), ('decision', 'we decided to use Redis.'), ('exact', 'It listens on port 6380.')]
    """
    found: list[Sentence] = []
    heading: Kind | None = None
    for line in itertools.chain.from_iterable(map(_items, _FENCED.sub("\n", text).splitlines())):
        if _NOT_SAID.match(line) or is_form(line):
            continue
        item = _LIST_MARK.sub("", line, count=1)
        if item == line and line.strip():
            heading = _heading(line)
        task = _TASK.match(item)
        told: Kind | None = "open" if task and not task[1].strip() else heading if item != line else None
        for piece in _END.split(item[task.end() :] if task else item):
            said = " ".join(_OPENING.sub("", piece.strip(), count=1).split())
            if said and len(piece) <= _MOST_CHARACTERS:
                found.append(_sentence(shortened(said, MOST_COLUMNS), len(found), told))
    return found


def _items(line: str) -> Sequence[str]:
    """Return the items of a list that is written in one line, each with its mark, and what introduces them.

    >>> _items("Still open: 1. the key; 2. the port"), _items("Port 80. Then 2.")
    (['Still open: ', '1. the key', '2. the port'], ['Port 80. Then 2.'])
    """
    marks = list(_INLINE_MARK.finditer(line))
    if [mark[1] for mark in marks[:2]] != ["1", "2"]:
        return [line]
    borders = [0, *(mark.start(1) for mark in marks), len(line)]
    pieces = (line[start:end] for start, end in itertools.pairwise(borders))
    return [piece.rstrip(" ;；,，") if place else piece for place, piece in enumerate(pieces)]


def _heading(line: str) -> Kind | None:
    """Return of which kind the items of a list are that a line introduces, None where it tells none.

    >>> _heading("Still open:"), _heading("We decided:"), _heading("For example:")
    ('open', 'decision', None)
    """
    said = line.strip().rstrip("*_ ")
    if not said.endswith((":", "：")) or columns(said) > _LONGEST_HEADING:
        return None
    return "open" if _OPEN_HEADING.search(said) else "decision" if _DECISION_HEADING.search(said) else None


def is_form(text: str) -> bool:
    """Tell whether a text holds what would be read as the form of a checkpoint.

    >>> is_form("end with CHECKPOINT_DONE"), is_form("end with a dot")
    (True, False)
    """
    return bool(_FORM.search(text))


def _sentence(said: str, place: int, told: Kind | None) -> Sentence:
    values, names = _VALUE.findall(said), _NAME.findall(said)
    tokens = (token for token in tokens_of(said) if len(token) > 1 or token.isdigit())
    words = frozenset(token for token in tokens if not is_stop_token(token))
    telling = words & frozenset(token for piece in (*values, *names) for token in tokens_of(piece))
    # What a list is of holds for each of its items, however short.
    kind = told if told and words else _kind(said, len(words), exact=bool(values))
    return Sentence(said, place, kind, words, telling)


def _kind(said: str, words: int, *, exact: bool) -> Kind:
    """Return what a sentence is good for.

    >>> [_kind(said, 3, exact=False) for said in ("TODO: write the tests", "改用 pnpm 部署", "Thanks for the help!")]
    ['open', 'decision', 'filler']
    """
    if (
        (len(said) <= _LONGEST_FILLER and _FILLER.match(said))
        or _ONLY_FILLER.fullmatch(said)
        or said.endswith((":", "："))
    ):
        return "filler"
    if _QUESTION.search(said):
        return "question" if words >= _LEAST_WORDS else "filler"
    if words and _OPEN.search(said):
        return "open"
    if words and _DECISION.search(said) and not _IMAGINED.match(said):
        return "decision"
    if words < (_LEAST_WORDS - 1 if exact else _LEAST_WORDS):
        return "filler"
    return "exact" if exact else "plain"


def columns(text: str) -> int:
    """Return how many columns of a display a text takes; an ideograph takes two.

    >>> columns("用pnpm")
    6
    """
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many columns, cut at a border and with an ellipsis where it was longer.

    >>> shortened("Deploys run at night, and only from main.", 24)
    'Deploys run at night, …'
    """
    if columns(text) <= most:
        return text
    kept, room = "", most - columns(_CUT) - 1
    for piece in _BORDER.split(text):
        if columns(kept + piece) > room:
            break
        kept += piece
    if not kept.strip():  # a word without end
        kept = text[: room // 2]
    return kept.strip() + (" " if kept.isascii() else "") + _CUT


# ---- what a user holds to


def is_standing(sentence: str) -> bool:
    """Tell whether a sentence of a user looks like a standing setting."""
    return bool(reminders.standing_setting(sentence))


def is_settled(sentence: str) -> bool:
    """Tell whether a user says of themselves, or of a group they belong to, that something is decided for good.

    >>> [is_settled(said) for said in ("We decided to use Redis.", "She decided to leave.", "我们决定用 pnpm。")]
    [True, False, True]
    """
    lasting = not english.NOT_LASTING.search(sentence.lower()) and not chinese.NOT_LASTING.search(sentence)
    return lasting and bool(_SETTLED.search(sentence)) and not _IMAGINED.match(sentence)


def is_binding(sentence: str) -> bool:
    """Tell whether a sentence of a user asks for something that holds from now on, or without exception.

    >>> is_binding("From now on answer in German."), is_binding("以后都用英文写。"), is_binding("I am a nurse.")
    (True, True, False)
    """
    lasting = english.LASTING.search(sentence.lower()) or chinese.LASTING.match(sentence)
    return bool(lasting or is_absolute(sentence)) and is_standing(sentence)


def is_absolute(sentence: str) -> bool:
    """Tell whether a sentence asks for something without exception, and tells of no habit of who says it.

    >>> is_absolute("Never push to main."), is_absolute("I always get up at six."), is_absolute("必须先跑测试。")
    (True, False, True)
    """
    return bool(_ABSOLUTE.search(sentence)) and not _OF_ONESELF.search(sentence)


def names_in(sentence: str) -> tuple[str, ...]:
    """Return the names that a sentence holds, as they stand there, each once; numbers and single letters are none.

    >>> names_in("We decided to use Redis and `uv` for CI, 部署用pnpm。")
    ('Redis', 'uv', 'CI', 'pnpm')
    """
    names = (name.strip(" `.") for name in _NAME.findall(sentence))
    return tuple(dict.fromkeys(name for name in names if len(name) > 1 and not is_stop_word(name.lower())))


# ---- files


def files_of(texts: Iterable[str]) -> list[str]:
    """Return the files and paths that texts name, the most often named first; a path's short name is none.

    >>> files_of(["Edit src/app.py and 看README.md。", "src/app.py:12 fails, app.py", "see https://a.b/c.py, 1/2"])
    ['src/app.py', 'README.md']
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(path for path in _FILE.findall(_ADDRESS.sub(" ", text)) if not _PRODUCT.fullmatch(path))
    ends = Counter[str]()
    for path in counts:
        pieces = re.split(r"[\\/]", path)
        ends.update({"/".join(pieces[place:]) for place in range(1, len(pieces))})
    whole = [path for path in counts if not ends[path.replace("\\", "/")]]
    return sorted(whole, key=lambda path: -counts[path])
