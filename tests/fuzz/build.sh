#!/usr/bin/env bash
# Builds the fuzz targets for OSS-Fuzz, from the tree in $SRC/playfs, with $CXX, $CXXFLAGS and the engine in
# $LIB_FUZZING_ENGINE. $OUT gets the targets, their dictionaries and corpora, and the libraries that they need. Requires
# the packages of `build`, `test` and `sanitize` in tools/packages.
set -euo pipefail
cd "$SRC/playfs"
build=${WORK:-$SRC}/playfs-fuzz

# Debian's C++ libraries are built for its own standard library.
CXXFLAGS=${CXXFLAGS//-stdlib=libc++/} meson setup "$build" --buildtype=plain -Db_lundef=false -Dtests=true -Dfuzzers=true -Dunity_sources=true \
  -Dfuzzing_engine="$LIB_FUZZING_ENGINE" -Dcpp_link_args='-Wl,-rpath,$ORIGIN/lib'
ninja -C "$build" fuzzers

mkdir -p "$OUT/lib"
for program in "$build"/tests/fuzz/fuzz-*; do
  [[ -f $program && -x $program ]] || continue
  name=${program##*/} target=${program##*/fuzz-}
  cp "$program" "$OUT/"
  [[ ! -f tests/fuzz/dictionaries/$target.dict ]] || cp "tests/fuzz/dictionaries/$target.dict" "$OUT/$name.dict"
  (cd "tests/fuzz/corpus/$target" && python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" *)
  ldd "$program" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|ld-linux.*)\.so/ { print $3 }' | xargs -r cp -Lt "$OUT/lib"
done
