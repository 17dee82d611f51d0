"""What ``signal`` offers, without its price: the C module behind it.

The package wraps the same functions and numbers in classes of ``enum``, which costs 3 ms and 0.8 MB with all that it
loads, in every supervisor. Numbers are plain integers here, and so is what the functions return.
"""

TYPE_CHECKING = False  # checkers, for which nobody has described the C module, are shown the original
if TYPE_CHECKING:
    from signal import *  # noqa: F403  # the same names
else:
    from _signal import *  # noqa: F403  # as above
