"""What a client names as its hook: runs lean_road.py, which, other than this, is compiled only once."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

import sys

sys.path.insert(0, __file__[: -len("/lean.py")])
import lean_road

del sys.path[0]
lean_road.main()
