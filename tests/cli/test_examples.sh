#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples, which are built beside the command: sources with labels and without.
. "$(dirname "$0")/lib.sh"
minimal=$(dirname "$stoker")/minimal train=$(dirname "$stoker")/train
if [ ! -x "$minimal" ] || [ ! -x "$train" ]; then
  echo "skipped: the examples are not built"
  exit 77
fi
make_photos
mkdir flat
find photos -name '*.jpg' -exec cp {} flat/ \;
find flat -name '*.jpg' | sort | awk '{ print $0 " " NR + 6 }' >list.txt

ends 0 "minimal" "$minimal" photos
says out '^24 images; the first has label [0-3] ' "the labels of classes"
ends 0 "minimal on a folder of files" "$minimal" flat
says out '^24 images; the first has label -1 ' "a folder of files has no labels"
ends 0 "minimal on a list" "$minimal" list.txt
says out '^24 images; the first has label ([7-9]|[12][0-9]|30) ' "the labels of a list"
ends 1 "minimal on nothing" "$minimal" nowhere
says err 'nowhere' "what is missing is named"
ends 0 "own_op" "$(dirname "$minimal")/own_op" photos
says out '^16 images, 49[0-9]{3} blank values' "an op of one's own changes rows"
"$train" flat >out 2>err && fail "train without classes ends with 0"
says err 'must contain one folder per class' "train without classes"
finish
