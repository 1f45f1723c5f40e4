"""Values as JSON on one line, which is what JSON Lines and the frontmatter of Markdown files are made of."""

import json
import re

# What would drive a terminal, reverse a line or end one, and what YAML has no place for; JSON has a form for each.
_UNSEEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def json_line(value: object) -> str:
    r"""Return a value as JSON on one line without its end; it is YAML too.

    >>> print(json_line({"name": "老大\u2028\x9b", "ids": [1, 2]}))
    {"name":"老大\u2028\u009b","ids":[1,2]}
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
