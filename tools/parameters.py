#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The table of module parameters in install.md, from the sources.

    tools/parameters.py --write    writes the table; make doc-check checks it"""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = TOP / 'Documentation/install.md'
BEGIN, END = '<!-- tools/parameters.py writes this -->', '<!-- until here -->'
# Providers first.
SOURCES = ('rust/**/*.rs', 'rust/**/*.c', 'samples/**/*.rs', 'samples/**/*.c')


def plain(literals):
    """Returns the text of adjacent string literals."""
    return ''.join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('|', '\\|')


def module_of(path):
    """Returns the module that a C file is linked into."""
    kbuild = ''.join(i.read_text() for i in (TOP / 'Kbuild', TOP / 'samples/Kbuild'))
    name = path.relative_to(TOP).with_suffix('.o')
    found = re.search(rf'^(\w+)-y .*?{re.escape(str(name))}\b', kbuild.replace('\\\n', ' '), re.M)
    return found[1] if found else path.stem


def rust(text):
    """Yields the parameters of a `module!`."""
    block = re.search(r'^module! \{\n(.*?)^\}', text, re.S | re.M)
    if not block or 'params: {' not in block[1]:
        return
    module = re.search(r'name: "(\w+)"', block[1])[1]
    for i in re.finditer(r'^        (\w+): (\w+) \{\s*default: (\S+),\s*description: (".*?"),\s*\}',
                         block[1], re.S | re.M):
        yield module, i[1], i[2], i[3].replace('_', ''), 'no', plain(i[4])


def c(path, text):
    """Yields the parameters that a C file defines."""
    for i in re.finditer(r'^module_param(?:_cb)?\((\w+),(?: (\w+),| .*?,) (0\d+)\);\n'
                         r'(?:__MODULE_PARM_TYPE\(\w+, "(\w+)"\);\n)?MODULE_PARM_DESC\(\w+,(.*?)\);',
                         text, re.S | re.M):
        kind = i[2] or i[4]
        value = re.search(rf'^static .*\b{i[1]}(?: = "?(\w+)"?)?;', text, re.M)[1]
        yield (module_of(path), i[1], kind, value or {'charp': 'none'}.get(kind, '0'),
               'yes' if int(i[3], 8) & 0o222 else 'no', plain(i[5]))
    for i in re.finditer(r'^module_param_string\((\w+), (\w+), [^,]+, (0\d+)\);\n'
                         r'MODULE_PARM_DESC\(\w+,(.*?)\);', text, re.S | re.M):
        value = re.search(rf'^char {i[2]}\[[^]]*\] = "(.*?)";', text, re.M)[1]
        yield (module_of(path), i[1], 'string', value, 'yes' if int(i[3], 8) & 0o222 else 'no',
               plain(i[4]))


def parameters():
    """Returns the parameters of each module."""
    found = []
    for pattern in SOURCES:
        for path in sorted(TOP.glob(pattern)):
            text = path.read_text()
            found += rust(text) if path.suffix == '.rs' else c(path, text)
    return sorted(found, key=lambda i: (i[0] not in ('kfi_verbs', 'kfi_loop'), i))


def generated(text):
    """Returns the text of the document with its table rewritten."""
    if text.count(BEGIN) != 1:
        sys.exit(f'parameters.py: "{BEGIN}" must occur once in {DOCUMENT.name}')
    before, _, rest = text.partition(BEGIN + '\n')
    after = rest.partition(END)[2]
    table = ['| module | parameter | type | default | can change later | description |',
             '|---|---|---|---|---|---|']
    for module, name, kind, value, later, what in parameters():
        table.append(f'| {module} | `{name}` | {kind} | {value} | {later} | {what} |')
    return '\n'.join([before + BEGIN, '', *table, '', END]) + after


def check():
    """Yields a line for each fault."""
    text = DOCUMENT.read_text()
    if generated(text) != text:
        yield f'Documentation/{DOCUMENT.name}: not as tools/parameters.py --write writes it'


if __name__ == '__main__':
    if sys.argv[1:] != ['--write']:
        sys.exit(__doc__)
    DOCUMENT.write_text(generated(DOCUMENT.read_text()))
