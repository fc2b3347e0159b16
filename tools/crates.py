# SPDX-License-Identifier: GPL-2.0
"""Our Rust crates, as a build has compiled them.

kbuild records the command of every object in .NAME.o.cmd.  That is the one place
that knows a crate's source, flags and dependencies, so tools read it from there.
"""

import pathlib
import shlex
import sys


class Crate:
    """One compiled crate: name, root (its source file) and args (of rustc)."""

    def __init__(self, root, env, args):
        self.root = root
        self.name = pathlib.Path(root).stem
        self.env = env
        self.args = args

    def options(self, *names):
        """The values of options that are given as `NAME VALUE` or `NAME=VALUE`."""
        for i, arg in enumerate(self.args):
            for name in names:
                if arg == name:
                    yield self.args[i + 1]
                elif arg.startswith(name + "="):
                    yield arg[len(name) + 1 :]

    def externs(self):
        """Names of the crates that this one sees."""
        return [e.split("=")[0] for e in self.options("--extern")]


def read(build):
    """The crates of the build directory; there are some, or this ends."""
    return list(_read(build)) or sys.exit(f"{build}: no crate was compiled there")


def _read(build):
    for cmd in sorted(pathlib.Path(build).rglob(".*.o.cmd")):
        line = cmd.read_text().split("\n", 1)[0]
        # What is done with the compiler's output comes behind it (rust/Makefile.inline).
        words = shlex.split(line.split(":=", 1)[1].split(" ;")[0])
        if not words or not words[-1].endswith(".rs"):
            continue
        start = next(i for i, w in enumerate(words) if "=" not in w)
        env = dict(w.split("=", 1) for w in words[:start])
        yield Crate(words[-1], env, words[start + 1 : -1])
