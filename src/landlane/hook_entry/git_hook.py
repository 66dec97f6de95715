"""The script that git hooks run: runs git_fast_path.py, which is compiled only once."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false

import sys

sys.path.insert(0, __file__[: -len("/git_hook.py")])
import git_fast_path as fast_path

del sys.path[0]
if __name__ == "__main__":
    fast_path.main()
