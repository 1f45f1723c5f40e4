"""The folders of the user: where settings and memories lie, and where what runs just now is told."""

import os
import sys


def settings_folder() -> str:
    """Return the folder of the user's settings, whether or not there is one."""
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_config_path

        return str(user_config_path("graphmem", appauthor=False))
    return _by_the_rule("XDG_CONFIG_HOME", "~/.config")


def data_folder() -> str:
    """Return the folder of the user's data, whether or not there is one."""
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_data_path

        return str(user_data_path("graphmem", appauthor=False))
    return _by_the_rule("XDG_DATA_HOME", "~/.local/share")


def state_folder() -> str:
    """Return the folder of what outlives no restart of this machine, whether or not there is one."""
    if sys.platform in ("darwin", "win32"):
        from platformdirs import user_state_path

        return str(user_state_path("graphmem", appauthor=False))
    return _by_the_rule("XDG_STATE_HOME", "~/.local/state")


def make_state_folder(name: str) -> None:
    """Make a folder in that of state; both are for the user alone."""
    above = state_folder()
    for folder in (above, f"{above}{os.sep}{name}"):  # of folders made on the way the mode would be the usual one
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 (pathlib takes longer to load than a hook may)


def _by_the_rule(variable: str, usual: str) -> str:
    # As platformdirs has it, which takes a quarter of the time of a command to load; the rule is
    # https://specifications.freedesktop.org/basedir-spec/latest/
    return f"{os.environ.get(variable, '').strip() or os.path.expanduser(usual)}/graphmem"
