"""What is executed as the supervisor: a stub, because a main script is compiled anew at every start.

Run as ``python -I -S __main__.py ROOT…``: isolated, without ``site``, so the roots of Jobman and its libraries are
given.
"""

import sys

sys.path.extend(sys.argv[1:])

from jobman.supervisor.ownership import main  # needs the path above

main()
