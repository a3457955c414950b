#!/bin/sh
# Checks convergence.pml in all orders: check_model.sh SPIN MODEL. Fails where an assertion can, or something never ends.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp "$2" "$directory/model.pml"
cd "$directory"
"$1" -a model.pml
cc -O2 -DSAFETY -DCOLLAPSE -DNOFAIR -w -o pan pan.c
./pan -m200000 -E >result
grep -E 'errors:|states, stored|elapsed|unreached' result || true
grep -q 'errors: 0' result
! grep -q 'max search depth too small' result
