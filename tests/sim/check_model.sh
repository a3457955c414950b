#!/bin/sh
# Checks convergence.pml in all orders, and that breaking the protocol violates its claims.
#
#   check_model.sh MODEL [whole]
#
# By default only a hash of a few bits is kept per state, which takes seconds and might miss one state in millions;
# `whole` keeps complete states, which takes some minutes and 600 MB.
set -eu
for tool in spin cc; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp "$1" "$directory/model.pml"
cd "$directory"

# build MACRO REMEMBER: makes the checker of one variant.
build() {
  spin ${1:+"-D$1"} -a model.pml
  cc -O2 -DSAFETY -DNOFAIR "$2" -w -o pan pan.c
}

if [ "${2:-}" = whole ]; then
  build '' -DCOLLAPSE
  ./pan -m20000 >result
else
  build '' -DBITSTATE
  ./pan -m20000 -w28 -k3 >result
fi
grep -E 'assertion|errors:|states, stored|elapsed' result
grep -q 'errors: 0' result
! grep -q 'max search depth too small' result

for broken in NO_REREAD NO_VERIFY SHORT_SCAN; do
  build $broken -DBITSTATE
  ./pan -m20000 -w24 >result
  printf '%s: ' $broken
  grep -E 'assertion violated' result || { echo 'not noticed'; exit 1; }
done
