#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# tools/errnos.py --write    writes what is generated; make doc-check checks
#
# The error tables of the manual pages are the one source of which call returns which errno, and why:
#
#	| `kfi_mr_bind()`, in this order | error |
#	|---|---|
#	| `mr` or `bfid` is NULL | `-KFI_EINVAL` |
#
# Each row has one errno, or "those of" another call in its place. A cause that begins with calls and a
# colon holds for these calls only. A column "step" is put in front of the cause. A heading such as
# "`kfi_close()` of a counter" marks a part of the table that another page has.
#
# The tool writes:
#
# - the lists after "Return:" in the headers, and those of operations of extensions, for calls that
#   have a table;
# - the tables of kfi_errno(3), from kfi_errno.h and the texts of kfi_strerror(), too;
# - the errnos of each call, for the selftest of random calls.
#
# tools/check-docs fails if one of these differs, or if a selftest expects an errno of a call, or a
# document says that a call returns one, that is not in the call's table.

import collections
import pathlib
import re
import sys
import textwrap

TOP = pathlib.Path(__file__).resolve().parent.parent
SELFTESTS = TOP / 'tools/testing/selftests/kfi'
LISTS = SELFTESTS / 'test/random/errnos.h'
CALLS = r'`\w+\(\)`(?:(?:, | and )`\w+\(\)`)*'
CALL = re.compile(r'`(\w+)\(\)`')
ERRNO = re.compile(r'-(KFI_E\w+)')
# What any call returns, whether or not its table says so: for an object that is none, and where a
# provider written in C doesn't have the call.
ANY = {'KFI_EINVAL', 'KFI_ENOSYS'}
# A row of the suites of refusals is about this call.
REGISTRATION = 'kfi_mr_reg'
# The provider there is the test's own, and returns what the test wants.
OWN_PROVIDER = SELFTESTS / 'test/core/shared.c'


def cells(line):
    """Returns the cells of a row."""
    return [i.strip() for i in re.split(r'(?<!\\)\|', line.strip())[1:-1]]


def tables(text):
    """Yields each table: the number of its first line, its heading and its rows."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        first = at
        while at < len(lines) and lines[at].startswith('|'):
            at += 1
        if at - first > 2:
            yield first + 1, cells(lines[first]), [cells(i) for i in lines[first + 2:at]]
        at += 1


Row = collections.namedtuple('Row', 'errno cause only')


class Errnos:
    """The error tables of the manual pages."""

    def __init__(self):
        self.rows = {}      # call: its rows, in order
        self.parts = []     # (page, line, call, rows): parts of a call's table
        self.pages = collections.defaultdict(set)       # errno: pages
        self.told = collections.defaultdict(set)        # errno, as `err` of an entry: pages
        self.listed = collections.defaultdict(set)      # operation of an extension: errnos in its header
        self.faults = []
        for path in sorted((TOP / 'Documentation').glob('*.[37].md')):
            for line, head, rows in tables(path.read_text()):
                self.table(path, line, head, rows)
        for path in (TOP / 'include').glob('*.h'):
            for name, listed in operations(path.read_text()):
                self.listed[name].update(ERRNO.findall(listed))
        self.aliases = dict(self.find_aliases())
        declared = {name for path in (TOP / 'include').glob('*.h') for find in (functions, operations)
                    for name, _ in find(path.read_text())}
        self.faults += [f'{i}() has a table, and is in no header' for i in self.rows.keys() - declared]

    def table(self, path, line, head, rows):
        """Takes a table, if it is one of errors."""
        page = '.'.join(path.name.split('.')[:2])
        if '`err`' in head:
            for row in rows:
                for i in re.findall(r'KFI_E\w+', row[head.index('`err`')]):
                    self.told[i].add(page)
        if 'error' not in head or page == 'kfi_errno.3':
            return
        error = head.index('error')
        cause = next((n for n, i in enumerate(head) if CALL.match(i)), None)
        if cause is None:
            self.faults.append(f'{path.name}:{line}: a table of errors without a call in its heading')
            return
        parsed, step = [], ''
        for number, row in enumerate(rows, line + 2):
            errnos = ERRNO.findall(row[error])
            if 'step' in head:
                step = re.sub(r'^\d+\. ', '', row[head.index('step')]) + ': ' \
                    if row[head.index('step')] else step
            if len(errnos) == 1:
                only = re.match(rf'({CALLS}): ', row[cause])
                text = step + (row[cause][only.end():] if only else row[cause])
                parsed.append(Row(errnos[0], text, CALL.findall(only[1]) if only else None))
                self.pages[errnos[0]].add(page)
            elif not errnos and row[error].startswith('those of'):
                parsed.append(Row(None, row[cause], CALL.findall(row[error])))
            else:
                self.faults.append(f'{path.name}:{number}: not one errno: {row[error]}')
        calls = CALL.findall(head[cause])
        if re.match(r'`kfi_\w+\(\)` of ', head[cause]):
            self.parts.append((path.name, line, calls[0], parsed))
            return
        for i in calls:
            if i in self.rows:
                self.faults.append(f'{path.name}:{line}: another table of {i}()')
            self.rows[i] = parsed

    def find_aliases(self):
        """Yields calls whose comment refers to another call for errnos, and that call."""
        for path in (TOP / 'include').glob('*.h'):
            for name, comment in functions(path.read_text()):
                same = re.search(r'\* Return: (?:\w+ or an errno, see|How many, or an errno, see'
                                 r'|What|As) (kfi_\w+)\(\)', comment)
                if same:
                    yield name, same[1]

    def of(self, call):
        """Returns the rows of a call."""
        names = {call}
        while call not in self.rows and call in self.aliases:
            call = self.aliases[call]
            names.add(call)
        return [i for i in self.rows.get(call, [])
                if i.errno is None or i.only is None or names & set(i.only)]

    def allows(self, call, errno):
        """Returns False if the call has a table, or a list in a header, and the errno is not in it."""
        if not self.of(call):
            return errno in self.listed.get(call, {errno})
        return errno in self.set(call)

    def set(self, call):
        """Returns the errnos that a call may return."""
        found = set(ANY)
        for row in self.of(call):
            if row.errno is None:
                for i in row.only:
                    found |= self.set(i)
            else:
                found.add(row.errno)
        return found


def functions(text):
    """Yields each function of a header that has a comment, and that comment."""
    for i in re.finditer(r'/\*\*\n \* (kfi_\w+)\(\) - .*?\*/\n', text, re.S):
        yield i[1], i[0]


def operations(text):
    """Yields each operation of an extension that returns errnos, and the list of these."""
    for i in re.finditer(r'^ \* @(\w+): (?:(?!^ \* @|^ \*/).)*?\n((?: \*\t-KFI_E(?:(?!^ \* @|^ \*/).)*))',
                         text, re.S | re.M):
        yield i[1], i[2]


# ----------------------------------------------------------------------------------
# Generated text


def plain(cause, named):
    """Returns a cause as plain text, with an @ in front of each argument in `named`."""
    cause = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', cause)
    cause = re.sub(r'(?<![\w*])\*(\w+)\*', r'@\1', cause)
    cause = re.sub(rf'`(\*?)({"|".join(named)})`', r'\1@\2', cause)
    return cause.replace('\\|', '|').replace('`', '')


def returned(errnos, call, named):
    """Yields the lines of the list in the comment of a call."""
    rows = errnos.of(call)
    if not any(i.errno == 'KFI_ENOSYS' for i in rows):
        rows = rows + [Row('KFI_ENOSYS', "the provider doesn't have this call", None)]
    for row in rows:
        if row.errno is None:
            text = f'The errors of {", ".join(f"{i}()" for i in row.only)}: {plain(row.cause, named)}.'
        else:
            text = f'-{row.errno}: {plain(row.cause, named)}.'
        yield from textwrap.wrap(text, 100, initial_indent=' * * ', subsequent_indent=' *   ',
                                 break_long_words=False, break_on_hyphens=False)


def alternatives(errnos, call):
    """Returns the same of an operation of an extension."""
    causes = [f'-{i.errno} ({plain(i.cause, ["fid", "domain_fid", "sgl", "count"])})'
              for i in errnos.of(call)]
    causes = ([f'{i},' for i in causes[:-2]] + [f'{i}, or' for i in causes[-2:-1]]
              + [f'{causes[-1]}.'])
    return ''.join(f' *\t{line}\n' for cause in causes for line in textwrap.wrap(
        cause, 90, break_long_words=False, break_on_hyphens=False))


def header(errnos, text):
    """Returns the text of a header with its lists rewritten."""
    for name, comment in functions(text):
        if name not in errnos.rows or name in errnos.aliases:
            continue
        lead = re.search(r'^ \* Return: ([^:]*?):\n \*\n', comment, re.M)
        if not lead:
            errnos.faults.append(f'{name}(): "Return:" is not followed by a list')
            continue
        named = re.findall(r'^ \* @(\w+):', comment, re.M)
        lines = '\n'.join(returned(errnos, name, named))
        text = text.replace(comment, f'{comment[:lead.end()]}{lines}\n */\n')
    for name, listed in operations(text):
        if name in errnos.rows:
            text = text.replace(listed, alternatives(errnos, name))
    return text


def region(text, name, lines):
    """Returns the text of a manual page with the generated part of this name rewritten."""
    begin, end = f'<!-- tools/errnos.py writes this: {name} -->', '<!-- until here -->'
    if text.count(begin) != 1:
        sys.exit(f'errnos.py: "{begin}" occurs {text.count(begin)} times, and must occur once')
    before, _, rest = text.partition(begin + '\n')
    _, _, after = rest.partition(end)
    return before + '\n'.join([begin, '', *lines, '', end]) + after


def manual(errnos, text):
    """Returns the text of kfi_errno(3) with its generated parts rewritten."""
    source = (TOP / 'include/kfi_errno.h').read_text()
    texts = dict(re.findall(r'^    (E\w+): "(.*)";$',
                            (TOP / 'rust/kfabric/support/errno.rs').read_text(), re.M))
    own = re.search(r'^enum \{(.*?)^\}', source, re.S | re.M)[1]
    own = re.findall(r'^\t(KFI_E\w+)\s*= (?:KFI_ERRNO_OFFSET|\d+),', own, re.M)
    linux = re.findall(r'^#define (KFI_E\w+)\s+E\w+$', source, re.M)
    added = source.partition('added by this project. */')[2].partition('/*')[0]
    short = lambda page: page.removeprefix('kfi_')[:-2]
    pages = lambda found: ', '.join(f'[{short(i)}]' for i in sorted(found))
    table = ['| number | | means | returned by | `err` of an entry in |', '|---|---|---|---|---|']
    for name in linux + own:
        number = 256 + own.index(name) if name in own else 'Linux'
        row = [f'`{name}`', str(number), texts[name.removeprefix('KFI_')], pages(errnos.pages[name]),
               pages(errnos.told[name])]
        table.append('| ' + ' | '.join(row).replace('|  |', '| |').strip() + ' |')
    named = set().union(*errnos.pages.values(), *errnos.told.values())
    links = [f'[{short(i)}]: {i}.md' for i in sorted(named)]
    text = region(text, 'numbers', [*table, '', *links])
    listed = ', '.join(f'`{i}`' for i in re.findall(r'#define (KFI_\w+)', added))
    return region(text, 'added', textwrap.wrap(f'{listed}.', 80, break_on_hyphens=False))


def lists(errnos):
    """Returns the text of the header for the selftest of random calls."""
    text = ['/* SPDX-License-Identifier: GPL-2.0 */',
            '/* The errnos of each call. tools/errnos.py writes this from the manual pages. */']
    for call in sorted(errnos.rows.keys() | errnos.aliases):
        if call.startswith('kfi_') and errnos.of(call):
            text += textwrap.wrap(f'ERRNOS({call}, {", ".join(sorted(errnos.set(call)))});', 90,
                                  subsequent_indent='\t', break_long_words=False)
    return '\n'.join(text) + '\n'


def generated(errnos):
    """Yields each file that has generated parts, and the text that it should have."""
    yield LISTS, lists(errnos)
    for path in sorted((TOP / 'include').glob('kfi*.h')) + [TOP / 'include/kfabric.h']:
        yield path, header(errnos, path.read_text())
    path = TOP / 'Documentation/kfi_errno.3.md'
    yield path, manual(errnos, path.read_text())


# ----------------------------------------------------------------------------------
# Checks


def arguments(text, at):
    """Returns the arguments of a call whose opening parenthesis is in front of `at`."""
    depth, begin, found = 1, at, []
    for i in range(at, len(text)):
        depth += {'(': 1, ')': -1}.get(text[i], 0)
        if depth == 0 or depth == 1 and text[i] == ',':
            found.append(text[begin:i].strip())
            begin = i + 1
        if depth == 0:
            return found
    return found


def expectations(path):
    """Yields the line, the call and the errno of each expectation of a selftest."""
    text = path.read_text()
    line = lambda at: text.count('\n', 0, at) + 1
    for i in re.finditer(r'\b(?:EXPECT_EQ|REFUSED)\(', text):
        given = arguments(text, i.end())
        calls = filter(None, (re.match(r'(kfi_\w+)\(', arg) for arg in given))
        errnos = filter(None, (re.fullmatch(r'-(KFI_E\w+)', arg) for arg in given))
        for call, errno in zip(calls, errnos):
            yield line(i.start()), call[1], errno[1]
    if path.parent.name == 'refusal':
        for i in re.finditer(r'(?:\bROW\(|\{ )"[^"]*", \w+_CALLS, -(KFI_E\w+),', text):
            yield line(i.start()), REGISTRATION, i[1]


def said(text):
    """Yields the place, the call and the errno of each statement about what a call returns."""
    for i in re.finditer(r'`(kfi_\w+)\(\)`[^`.;|]*\b(?:is|are|returns|fails with|gives|says)\b'
                         r'[^`.;|]{0,20}`-(KFI_E\w+)`', text):
        yield i.start(), i[1], i[2]
    # Guides have tables of errors with a column "of".
    for line, head, rows in tables(text):
        if head[:2] != ['error', 'of']:
            continue
        at = sum(len(i) for i in text.splitlines(True)[:line - 1])
        for row in rows:
            yield from ((at, call, errno) for call in CALL.findall(row[1])
                        for errno in ERRNO.findall(row[0]))


def check(errnos):
    """Yields a line for each fault."""
    for path, text in generated(errnos):
        if text != path.read_text():
            yield f'{path.relative_to(TOP)}: not as tools/errnos.py --write writes it'
    yield from errnos.faults
    for name, line, call, rows in errnos.parts:
        for i in rows:
            if i.errno and not errnos.allows(call, i.errno):
                yield f'Documentation/{name}:{line}: {i.errno} is not in the table of {call}()'
    for path in sorted(set(SELFTESTS.glob('**/*.c')) - {OWN_PROVIDER}):
        for line, call, errno in expectations(path):
            if not errnos.allows(call, errno):
                yield (f'{path.relative_to(TOP)}:{line}: {errno} is expected of {call}(), '
                       'and is not in its table')


def main(arguments):
    if arguments != ['--write']:
        sys.exit('usage: tools/errnos.py --write')
    errnos = Errnos()
    for path, text in generated(errnos):
        if not path.exists() or text != path.read_text():
            path.write_text(text)
    if errnos.faults:
        sys.exit('\n'.join(errnos.faults))


if __name__ == '__main__':
    main(sys.argv[1:])
