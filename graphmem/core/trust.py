"""Where what is stored comes from, as a class that a recall may ask for at the least."""

from graphmem.core.choices import SOURCE_CLASSES
from graphmem.errors import InvalidInput

# The most trusted first. What a person said, what an agent concluded, what a tool printed, what came from elsewhere.


def class_of(source: str) -> str:
    """Return the class of a source: the word before its first colon where that names one, else 'agent'.

    >>> class_of("user:ann"), class_of("tool:shell"), class_of("extractor")
    ('user', 'tool', 'agent')
    """
    word = source.partition(":")[0].strip().casefold()
    return word if word in SOURCE_CLASSES else "agent"


def is_person(source: str) -> bool:
    """Tell whether a source is a person, who decides on what binds.

    >>> is_person("user:ann"), is_person("agent:user")
    (True, False)
    """
    return class_of(source) == "user"


def checked_trust(least: str | None) -> str | None:
    """Return the class that is asked for at the least; raise InvalidInput for one that does not exist."""
    if least is not None and least not in SOURCE_CLASSES:
        raise InvalidInput("trust", least, f"give one of {', '.join(SOURCE_CLASSES)}")
    return least


def suffices(source: str, least: str) -> bool:
    """Tell whether a source is at least as trusted as a class.

    >>> suffices("user", "agent"), suffices("tool:web", "agent")
    (True, False)
    """
    return SOURCE_CLASSES.index(class_of(source)) <= SOURCE_CLASSES.index(least)
