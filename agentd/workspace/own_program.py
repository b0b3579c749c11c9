"""Where the running agentd's own program lies: code that runs outside of every sandbox, later or this moment.

Workers and wardens are started from these files, and so is the next daemon. Where the program is installed in
the workspace (an environment in the project, a checkout of agentd), whoever changes it has left the sandbox.
"""

import os
import sys
from functools import cache
from pathlib import Path


@cache
def program_places() -> tuple[Path, ...]:
    """The package, the environment that it is installed in and the interpreter's own folder, resolved."""
    package = Path(__file__).parents[1]
    places = (package, sys.prefix, sys.base_prefix)
    return tuple(dict.fromkeys(Path(os.path.realpath(place)) for place in places))


def is_of_program(path: Path) -> bool:
    """Whether a resolved path is part of the running program."""
    return any(path.is_relative_to(place) for place in program_places())
