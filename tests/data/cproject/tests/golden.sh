#!/bin/sh
# Runs every program in golden/ and compares what it prints, errors included, with the .out file beside it.
# golden.sh QUILL [--accept]
cd "$(dirname "$0")/.." || exit 1
failed=0 count=0
for program in tests/golden/*.ql; do
  wanted=${program%.ql}.out
  [ "$2" = --accept ] && "$1" run "$program" >"$wanted" 2>&1
  count=$((count + 1))
  "$1" run "$program" 2>&1 | cmp -s - "$wanted" || { echo "$program: not as in $wanted" >&2; failed=$((failed + 1)); }
done
printf '%-22s %3d programs, %d failed\n' tests/golden.sh "$count" "$failed"
[ "$failed" = 0 ]
