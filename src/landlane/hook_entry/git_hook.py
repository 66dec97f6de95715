"""The script that git hooks run: runs git_fast_path.py, which is compiled only once."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

import sys

sys.path.insert(0, __file__[: -len("/git_hook.py")])
import git_fast_path as git_road

del sys.path[0]
git_road.main()
