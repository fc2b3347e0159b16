#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The fenced blocks of the documents: where their commands run, and whether what they print is true.

    tools/doc_blocks.py write DIR KDIR    writes a script for each block that runs, to DIR/host and DIR/vm
    tools/doc_blocks.py judge DIR LOG     prints KTAP: LOG is the guest's, DIR has the host's results

The info string of a block says its language, and where its commands run:

    c, rust, make     code
    text              neither code nor commands
    sh host           commands for the machine that builds. All of a document run in order, in one
                      directory that looks like the checkout
    sh dry            the same, but each `make` is `make -n`, and other commands don't run
    sh vm             commands for a guest of tools/vm/run, which has all modules and the selftests
    console vm        the same, with a prompt before each command, and output between them

A comment in the line before a block adds to that:

    <!-- not run: REASON -->        for sh and console without a place, and for text with commands
    <!-- before: COMMANDS -->       run first, in the same place; may have several lines
    <!-- output of: COMMANDS -->    for text: the block is what these commands print in a guest
    <!-- file: build/DIR/NAME -->   for code: the content of this file, for the host's commands of
                                    the document. If they build modules there, guests get /kfi/DIR

Output is compared line by line. Each line of the block must be among what was printed. Hexadecimal
numbers and those of four digits and more may differ; an ellipsis stands for anything."""

import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
CODE = {'c', 'rust', 'make'}
PLACES = {'host', 'dry', 'vm'}
COMMAND = re.compile(r'^(?:[#$] )?(?:sudo )?(?:\w+=\S+ )*'
                     r'(?:make|modprobe|insmod|rmmod|ip|rdma|mount|echo|cat|sh|tools/\S+|\./\S+)(?: |$)', re.M)
# For a document's name in that of a script.
SELFTESTS = 'tools/testing/selftests/kfi/README'


class Block:
    def __init__(self, document, text, match):
        self.document = document
        self.line = text.count('\n', 0, match.start()) + 1
        self.language, _, self.place = match[2].strip().partition(' ')
        self.body = match[3]
        before = text[:match.start()]
        # The last comment, if nothing is between it and the block.
        note = re.fullmatch(r'<!-- (not run|before|output of|file):\s(.*?)\s*-->\n',
                            before[max(before.rfind('<!-- '), 0):], re.S)
        self.note, self.said = (note[1], note[2]) if note else (None, '')
        if self.note == 'output of':
            self.place = 'vm'

    def name(self):
        return f'{self.document}:{self.line}'

    def script(self):
        # Scripts sort by name, and run in the order of the document.
        return f'{self.directory()}-{self.line:04}.sh'

    def directory(self):
        """Returns the name of the directory for the document."""
        return re.sub(r'\W', '-', self.document)

    def fault(self):
        """What is wrong with its marks, or None."""
        language, place, note = self.language, self.place, self.note
        if not language:
            return 'a fenced block without a language: see tools/doc_blocks.py'
        if note == 'file' and (language not in CODE or not re.fullmatch(r'build/\w+/[\w.]+', self.said)):
            return 'a file is code, and in a directory below build'
        if language in CODE:
            return f'{language} has no place to run' if place else None
        if language == 'text':
            if place and note != 'output of':
                return 'text has no place to run'
            if COMMAND.search(self.body) and not note:
                return 'commands that say neither where they run nor why they do not'
            return None
        if language not in ('sh', 'console'):
            return f'a fenced block of an unknown language, {language}'
        if note == 'not run':
            return 'runs, and says why it does not' if place else None
        if place not in PLACES or language == 'console' and place != 'vm':
            return 'commands that say neither where they run nor why they do not'
        return None

    def runs(self):
        return bool(self.place) and not self.fault()

    def commands(self, kdir):
        before = self.said + '\n' if self.said else ''
        if self.note == 'output of':
            return before
        if self.language == 'console':
            return before + ''.join(i[2:] + '\n' for i in self.body.splitlines()
                                    if i[:2] in ('# ', '$ '))
        if self.place == 'dry':
            # What is no make names a file at least.
            return before + ''.join(self.dry(i.partition(' #')[0], kdir) + '\n'
                                    for i in self.body.splitlines() if not i.startswith('#'))
        return before + self.body

    @staticmethod
    def dry(line, kdir):
        line, made = re.subn(r'^((?:\w+=\S+ )*)make ', r'\1make -n ', line.replace('/path/to/kernel', kdir))
        if made:
            return line
        tool = line.split()[:1]
        return f'test -x {tool[0]}' if tool and '/' in tool[0] else ':'

    def expected(self):
        """The lines that must be printed."""
        if self.note == 'output of':
            return [i for i in self.body.splitlines() if i.strip()]
        if self.language == 'console':
            return [i for i in self.body.splitlines() if i.strip() and i[:2] not in ('# ', '$ ')]
        return []


def pattern(line):
    """A line of a document, as what may differ from run to run."""
    # The stamp of a trace: task, CPU, context, time.
    line = re.sub(r'^\S+-\d+ +\[\d+\] \S+ [\d.]+: ', '… ', line.strip())
    parts = re.split(r'(…|0x[0-9a-f]+|\d{4,}|\d+\.\d+|\s+)', line)
    loose = {'…': '.*'}
    return re.compile(''.join(
        loose.get(i) or (r'0x[0-9a-f]+' if i.startswith('0x') else r'[\d.]+' if re.fullmatch(r'[\d.]+', i)
                         else r'\s+' if i.isspace() else re.escape(i))
        if number % 2 else re.escape(i) for number, i in enumerate(parts)))


def blocks(document, text):
    for i in re.finditer(r'^( *)```([^\n`]*)\n(.*?)^ *```$', text, re.S | re.M):
        yield Block(document, text, i)


def faults(document, text):
    """The marks that are wrong or missing: line and what is wrong with it."""
    for i in blocks(document, text):
        fault = i.fault()
        if fault:
            yield i.line, fault


def documents():
    return (['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'] + sorted(str(i.relative_to(TOP)) for i in (TOP / 'Documentation').glob('*.md'))
            + [SELFTESTS])


def runnable():
    for name in documents():
        for i in blocks(name, (TOP / name).read_text()):
            if i.runs():
                yield i


def write(directory, kdir):
    for name in documents():
        for i in blocks(name, (TOP / name).read_text()):
            if i.note == 'file':
                path = directory / 'files' / i.directory() / i.said
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(i.body)
    for i in runnable():
        path = directory / ('vm' if i.place == 'vm' else 'host') / i.script()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(i.commands(kdir))


def spoken(log):
    """What each script of the guest printed, and how it ended."""
    said, name = {}, None
    for i in log.read_text(errors='replace').splitlines():
        i = re.sub(r'^\[ *[\d.]+\](?: *\[ *[TC]\d+\])? ?', '', i.rstrip('\r'))
        i = re.sub(r'^\| ', '', i)
        mark = re.match(r'documents: (begin|end) (\S+) ?(\d*)$', i)
        if not mark:
            if name:
                said[name][1].append(i)
        elif mark[1] == 'begin':
            name = mark[2]
            said[name] = [None, []]
        else:
            said[mark[2]][0] = mark[3]
            name = None
    return said


def judge(directory, log):
    said = spoken(log)
    for path in (directory / 'host').glob('*.out'):
        status = path.with_suffix('.status')
        said[path.stem] = [status.read_text().strip() if status.exists() else None,
                           path.read_text(errors='replace').splitlines()]
    todo = list(runnable())
    bad = 0
    print('TAP version 13')
    print(f'1..{len(todo)}')
    for number, i in enumerate(todo, 1):
        status, lines = said.get(i.script(), [None, []])
        wrong = []
        if status is None:
            wrong.append('did not run to its end')
        elif status != '0':
            wrong.append(f'ended with {status}')
        for line in i.expected():
            if not any(pattern(line).search(j) for j in lines):
                wrong.append(f'did not print: {line}')
        for line in wrong:
            print(f'# {i.name()}: {line}')
        if wrong:
            print('\n'.join(f'#   {j}' for j in lines[-40:]))
        bad += bool(wrong)
        print('not ok' if wrong else 'ok', number, f'commands: {i.name()}')
    return 1 if bad or not todo else 0


def main(what, directory, where):
    if what == 'write':
        return write(pathlib.Path(directory), where)
    return judge(pathlib.Path(directory), pathlib.Path(where))


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
