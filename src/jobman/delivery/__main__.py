"""What is executed as the sender: a stub, because a main script is compiled anew at every start.

Run as ``python -I -S __main__.py MODE ROOT…``: isolated, without ``site``, so the roots of Jobman and its libraries are
given.
"""

import sys

sys.path.extend(sys.argv[2:])

from jobman.delivery.sender import main  # needs the path above

main(sys.argv[1])
