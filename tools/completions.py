#!/usr/bin/env python3
"""completions.py PROGRAM DIRECTORY: writes lnorm.bash and _lnorm (zsh) from what the program says about itself: the
verbs and options of its --help, and the values that its error messages list."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

OPTION = re.compile(r"^  (?:-(?P<letter>\w), |    )--(?P<name>[\w-]+)(?:=(?P<value>\S+))?  +(?P<help>\S.*)$")
READ = ["npy", "safetensors"]


class Option(NamedTuple):
    letter: str
    name: str
    value: str
    help: str

    def words(self):
        return [f"--{self.name}"] + ([f"-{self.letter}"] if self.letter else [])

    def extensions(self):
        """Of the files that its value names; none where it is not a file."""
        if self.value == "Y.npy":
            return ["npy"]
        if self.value != "FILE":
            return []
        if "SVG" in self.help:
            return ["svg"]
        if self.help.startswith("write"):
            return ["npy"]
        return ["safetensors"] if ".safetensors" in self.help else READ


class Verb(NamedTuple):
    name: str
    summary: str
    options: list
    extensions: list  # of its arguments


class Program:
    def __init__(self, path):
        self.path = path
        self.verbs = [self.verb(*match) for match in re.findall(r"(?m)^  (\w+) +(\S.*)$", self.section("Verbs:"))]
        options = {option.name: option for verb in self.verbs for option in verb.options}
        self.options = list(options.values())
        self.values = {name: self.accepted(options[name]) for name in ("op", "dtype")}

    def say(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False)

    def section(self, heading, *verb):
        return self.say(*verb, "--help").stdout.split(heading + "\n")[1].split("\n\n")[0]

    def verb(self, name, summary):
        usage, options = self.say(name, "--help").stdout.split("\n")[0], []
        for line in self.section("Options:", name).split("\n"):
            if match := OPTION.match(line):
                options.append(Option(**match.groupdict()))
            else:
                options[-1] = options[-1]._replace(help=options[-1].help + " " + line.strip())
        files = READ if re.search(r"\.npy|FILE", usage) else ["safetensors"] if ".safetensors" in usage else []
        return Verb(name, summary, options, files)

    def accepted(self, option):
        """From "--op: expected layer, rms or batch, got ''"."""
        verb = next(verb for verb in self.verbs if option in verb.options)
        for positions in (["1"], ["/dev/null", "-o", "/dev/null"], ["/dev/null", "/dev/null"]):
            found = re.search(r"expected (.*), got ''", self.say(verb.name, *positions, f"--{option.name}=").stderr)
            if found:
                return re.split(", | or ", found[1])
        raise SystemExit(f"completions.py: 'lnorm {verb.name} --{option.name}=' does not say what it expects")


# -- bash ---------------------------------------------------------------------------------------------------------

BASH = """\
# Completion of lnorm for bash. Written by tools/completions.py; do not edit.

# The words that begin like the current one.
_lnorm_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Files of the given extensions, and directories.
_lnorm_files() {
    local extension
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        for extension in "$@"; do compgen -f -X "!*.$extension" -- "$cur"; done
        compgen -d -- "$cur"
    )
}

# The norms of the model that the command line names.
_lnorm_norms() {
    local i model=
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --model | -m)
            model=${COMP_WORDS[i + 1]}
            [[ $model == = ]] && model=${COMP_WORDS[i + 2]}
            ;;
        esac
    done
    [[ $model ]] && _lnorm_words "$("${COMP_WORDS[0]}" list "$model" 2>/dev/null | cut -d ' ' -f 1)"
}

_lnorm() {
    local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _lnorm_words "@VERBS@ --help --version"
        return
    fi
    # --name=value comes as three words
    if [[ $cur == = ]]; then
        cur=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $before in
@VALUES@
    esac
    case ${COMP_WORDS[1]}:$cur in
@WORDS@
    esac
}

complete -F _lnorm lnorm
"""


def bash_value(program, option):
    if option.name in program.values:
        return f'_lnorm_words "{" ".join(program.values[option.name])}"'
    if option.value == "NORM":
        return "_lnorm_norms"
    if option.extensions():
        return f"_lnorm_files {' '.join(option.extensions())}"
    return ""


def bash(program):
    values, words = {}, []
    for option in program.options:
        if option.value:
            values.setdefault(bash_value(program, option), []).extend(option.words())
    for verb in program.verbs:
        options = " ".join(word for option in verb.options for word in option.words())
        words += [f'    {verb.name}:-*) _lnorm_words "{options}" ;;']
    for verb in program.verbs:
        if verb.extensions:
            words.append(f"    {verb.name}:*) _lnorm_files {' '.join(verb.extensions)} ;;")
    cases = [f"    {' | '.join(names)})\n" + (f"        {do}\n" if do else "") + "        return\n        ;;"
             for do, names in values.items()]
    return (BASH.replace("@VERBS@", " ".join(verb.name for verb in program.verbs))
            .replace("@VALUES@", "\n".join(cases)).replace("@WORDS@", "\n".join(words)))


# -- zsh ----------------------------------------------------------------------------------------------------------

ZSH = """\
#compdef lnorm
# Completion of lnorm for zsh. Written by tools/completions.py; do not edit.

# The norms of the model that the command line names.
_lnorm_norms() {
    local -a norms
    local model=${opt_args[--model]:-${opt_args[-m]}}
    [[ -n $model ]] && norms=(${${(f)"$(_call_program norms lnorm list $model 2>/dev/null)"}%% *})
    compadd -a norms
}

_lnorm() {
    local curcontext=$curcontext state line
    local -A opt_args
    _arguments -C '(- *)--help[verbs and files]' '(- *)--version[version and licence]' \\
        '1:verb:->verb' '*::argument:->argument' && return
    case $state in
    verb)
        local -a verbs=(
@VERBS@
        )
        _describe verb verbs
        ;;
    argument)
        case $words[1] in
@WORDS@
        esac
        ;;
    esac
}

_lnorm "$@"
"""


def zsh_files(extensions):
    return '_files -g "*.({})(-.)"'.format("|".join(extensions))


def zsh_action(program, option):
    if option.name in program.values:
        return f"({' '.join(program.values[option.name])})"
    if option.value == "NORM":
        return "_lnorm_norms"
    return zsh_files(option.extensions()) if option.extensions() else " "


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_option(program, option):
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    rest = f"[{text}]" + (f":{option.value}:{zsh_action(program, option)}" if option.value else "")
    long = f"--{option.name}" + ("=" if option.value else "")
    if not option.letter:
        return "            " + quote(long + rest)
    short = f"-{option.letter}" + ("+" if option.value else "")
    return f"            '({' '.join(option.words())})'{{{long},{short}}}{quote(rest)}"


def zsh(program):
    verbs = [f"            {quote(verb.name + ':' + verb.summary)}" for verb in program.verbs]
    words = []
    for verb in program.verbs:
        lines = [zsh_option(program, option) for option in verb.options]
        if verb.extensions:
            lines.append(f"            {quote('*:file:' + zsh_files(verb.extensions))}")
        words += [f"        {verb.name})", "            _arguments \\"] + [
            "    " + line + (" \\" if line is not lines[-1] else "") for line in lines] + ["            ;;"]
    return ZSH.replace("@VERBS@", "\n".join(verbs)).replace("@WORDS@", "\n".join(words))


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: tools/completions.py PROGRAM DIRECTORY")
    program, directory = Program(sys.argv[1]), Path(sys.argv[2])
    (directory / "lnorm.bash").write_text(bash(program), encoding="utf-8")
    (directory / "_lnorm").write_text(zsh(program), encoding="utf-8")


if __name__ == "__main__":
    main()
