#!/bin/sh
# pictures.sh PROGRAM DIRECTORY: writes the pictures of docs/pictures, as `lnorm explain` draws them.
set -eu
program=$1
directory=$2
mkdir -p "$directory"

draw() { # name, arguments of explain
    name=$1
    shift
    "$program" explain "$@" --svg "$directory/$name.svg" >/dev/null
}
draw layer-norm 4,2,3 --normalized-shape 2,3
draw batch-norm 2,4,3,3 --op batch
draw group-norm 2,4,3,3 --op group --groups 2
draw instance-norm 2,4,3,3 --op instance
