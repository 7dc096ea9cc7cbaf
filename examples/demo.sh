#!/bin/sh
# demo.sh PROGRAM [MODEL]: the program `lnorm` at work: what shares a mean, a real model's layer norms, somebody else's
# results judged, a speed. `make demo` runs it. Every result is checked by `lnorm verify` against exact arithmetic; the
# status is 0 only if all of it is right.
set -u
lnorm=$1
model=${2:-tests/data/minilm.safetensors}
norm=encoder.layer.0.output.LayerNorm
bold= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
    bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
failures=0

title() {
    printf '\n%s%s%s\n' "$bold" "$*" "$plain"
}

# expect STATUS ARGUMENT...: runs the program before the reader's eyes.
expect() {
    wanted=$1
    shift
    printf '\n%s$ lnorm %s%s\n' "$bold" "$*" "$plain"
    "$lnorm" "$@" 2>&1
    status=$?
    [ $status -eq "$wanted" ] && return
    echo "demo: status $status of this command; expected $wanted"
    failures=$((failures + 1))
}

title "1. Which elements share a mean and a variance? An input of shape [4, 2, 3]"
expect 0 explain 4,2,3 --normalized-shape 3
expect 0 explain 4,2,3 --normalized-shape 2,3
expect 0 explain 4,2,3 --normalized-shape 4,2,3
expect 1 explain 4,2,3 --normalized-shape 2

title "2. The layer norms of a real model, all-MiniLM-L6-v2, on recorded English text"
expect 0 list "$model"
expect 0 apply "$model:$norm.input" -o "$directory/y.npy" --model "$model" --name "$norm" --eps 1e-12
expect 0 verify "$model:$norm.input" "$directory/y.npy" --model "$model" --name "$norm" --eps 1e-12
title "The same by PyTorch 2.13, as recorded"
expect 1 verify "$model:$norm.input" "$model:$norm.pytorch" --model "$model" --name "$norm" --eps 1e-12

title "All thirteen: applied, then verified"
echo
names=$("$lnorm" list "$model" | cut -d' ' -f1)
for name in $names; do
    "$lnorm" apply "$model:$name.input" -o - --model "$model" --name "$name" --eps 1e-12 |
        "$lnorm" verify "$model:$name.input" - --model "$model" --name "$name" --eps 1e-12 --max-ulp 0.501 \
            >"$directory/report" 2>&1
    status=$?
    printf '   %-44s %s, %s correctly rounded\n' "$name" \
        "$(sed -n 's/^largest error *\([^ ]* ulp\).*/\1/p' "$directory/report")" \
        "$(sed -n 's/^correctly rounded *\([^ ]* %\).*/\1/p' "$directory/report")"
    [ $status -eq 0 ] && continue
    cat "$directory/report"
    failures=$((failures + 1))
done
[ "$(echo "$names" | wc -l)" -eq 13 ] || { echo "demo: expected thirteen layer norms"; failures=$((failures + 1)); }

title "3. Speed"
expect 0 bench 64,768 --seconds 1

[ $failures -eq 0 ] && exit 0
printf '\ndemo: %d of the checks above failed.\n' "$failures"
exit 1
