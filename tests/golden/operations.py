#!/usr/bin/env python3
"""docs/operations.md holds the very table that `stickwright ops --markdown` prints."""
import os, pathlib, subprocess, sys

page = (pathlib.Path(os.environ["SW_SOURCE"]) / "docs/operations.md").read_text()
table = subprocess.run([os.environ["SW"], "ops", "--markdown"], capture_output=True, text=True, check=True).stdout
if not page.endswith(table):
    sys.exit("docs/operations.md is old: replace its tables by the output of `stickwright ops --markdown`")
print("equal")
