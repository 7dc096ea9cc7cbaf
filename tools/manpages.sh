#!/bin/sh
# manpages.sh PROGRAM DIRECTORY: writes lnorm.1 and a page for each verb, from the program's --help and man/*.h2m, by
# help2man. The same program and help2man give the same bytes: there is no date in them.
set -eu
[ $# = 2 ] || { echo "usage: tools/manpages.sh PROGRAM DIRECTORY" >&2; exit 2; }
program=$1
directory=$2
prose=$(dirname "$0")/../man
version=$("$program" --version | head -n 1)

# Examples, and whatever else is indented, are lines of their own and not to be filled. A verb's page is "lnorm-verb",
# and its summary stands under NAME already.
finish() {
    title=$(echo "$1" | tr a-z A-Z)
    awk -v title="$title" -v name="$1" -v version="$version" '
        /^\.TH / { print ".TH " title " \"1\" \"\" \"" version "\" \"User Commands\""; next }
        verbatim && /^\./ { print ".fi\n.RE"; verbatim = 0 }
        /^\.IP$/ { print ".PP\n.RS 4\n.nf"; verbatim = 1; next }
        naming { naming = 0; if (sub(/^lnorm [a-z]+ /, name " ")) summary = substr($0, length(name " \\- ") + 1) }
        described { described = 0; skipped = $0 == summary; if (skipped) next }
        skipped { skipped = 0; if ($0 == ".PP") next }
        /^\.SH NAME$/ { naming = 1 }
        /^\.SH DESCRIPTION$/ { described = 1 }
        { print }
        END { if (verbatim) print ".fi\n.RE" }' >"$directory/$1.1"
}

page() { # NAME COMMAND OPTION...
    name=$1
    shift
    help2man --no-info --locale=C "$@" | finish "$name"
}

page lnorm --include="$prose/lnorm.h2m" "$program"
"$program" --help | sed -n '/^Verbs:/,/^$/s/^  \([a-z]*\) *\(.*\)/\1 \2/p' | while read -r verb summary; do
    page "lnorm-$verb" --include="$prose/verb.h2m" --name="$summary" --version-string="${version#lnorm }" \
        "$program $verb" </dev/null
done
