# shellcheck shell=bash disable=SC2034  # sourced: its variables are used elsewhere
# Shared by quickstart, test and the gate. Sourced by bash, in any working directory.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build

# If ccache is installed, meson uses it; share its cache between checkouts.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1

say() { printf '%s\n' "$*" >&2; }
step() { printf '\n== %s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  shift
  (($#)) && printf '  %s\n' "$@" >&2
  exit 1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif ! command -v sudo >/dev/null; then
    die "installing packages needs root" "run this as root, or install sudo"
  elif [[ -t 0 ]]; then
    sudo -- "$@"
  else
    sudo -n -- "$@"
  fi
}

# packages SECTION…: prints the lines of those sections of tools/packages.
packages() {
  awk -v wanted=" $* " '
    /^\[/ { on = index(wanted, " " substr($0, 2, length($0) - 2) " "); next }
    /^[^#]/ && on' "$ROOT/tools/packages"
}

# is_installed NAME…: whether one of these packages is.
is_installed() {
  # Fails if it does not know one of them.
  { dpkg-query -W -f='${db:Status-Status}\n' "$@" 2>/dev/null || true; } | grep -x installed >/dev/null
}

# available LINE…: prints for each line the first of its packages that the package lists have; fails if one has none.
available() {
  local line name
  for line; do
    for name in $line; do
      [[ $(apt-cache madison "$name" 2>/dev/null) ]] && printf '%s\n' "$name" && continue 2
    done
    say "no package is available: $line"
    return 1
  done
}

apt_get() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0 "$@" </dev/null; }

# install_available LINE…: installs a package of each line.
install_available() {
  local names
  names=$(available "$@") || return
  # shellcheck disable=SC2086
  apt_get install -y --no-install-recommends $names
}

# install_packages SECTION…: installs missing packages; updates the package lists only if it has to.
install_packages() {
  local line lines=() log
  while read -r line; do
    # shellcheck disable=SC2086  # the names in a line
    is_installed $line || lines+=("$line")
  done < <(packages "$@")
  ((${#lines[@]})) || return 0
  step "Installing ${#lines[@]} packages: ${lines[*]// //}"
  log=$(mktemp)
  { install_available "${lines[@]}" || { apt_get update && install_available "${lines[@]}"; }; } >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "the packages could not be installed" "the full output is in $log"
  }
  rm -f "$log"
}

# is_debian12: later versions of clang-format and clang-tidy, which other releases have, want other things of the sources.
is_debian12() { [[ $(. /etc/os-release && printf '%s' "$ID${VERSION_ID-}") == debian12 ]]; }

# use_clang: later configurations compile and link with clang, through ccache if it is installed.
use_clang() {
  local launcher='' version
  command -v ccache >/dev/null && launcher='ccache '
  # By the name with its version, which is part of ccache's key.
  version=$(clang -dumpversion)
  version=${version%%.*}
  export CC="${launcher}clang-$version" CXX="${launcher}clang++-$version" CC_LD=lld CXX_LD=lld
}

# set_up_sanitizers: a report ends the program, and has function names. Instrumented tests do fewer rounds, which
# suffice for a sanitizer to see the code run; the simulators' rounds are set in tests/*/meson.build.
set_up_sanitizers() {
  export PLAYFS_BOUNDED=${PLAYFS_BOUNDED:-2 1} PLAYFS_POWER_CUTS=${PLAYFS_POWER_CUTS:-60}
  export PLAYFS_TEST_LIMIT=${PLAYFS_TEST_LIMIT:-2400}  # ten times the usual limit, as for all other tests
  local symbolizer
  symbolizer=$(command -v llvm-symbolizer) && export ASAN_SYMBOLIZER_PATH=$symbolizer
  export PLAYFS_SANITIZED=1  # for tests: newer mesons always set ASAN_OPTIONS
  export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1
  export LSAN_OPTIONS=suppressions=$ROOT/tools/leaks.suppressions:print_suppressions=0
  export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1${symbolizer:+:external_symbolizer_path=$symbolizer}
}

# configure DIR OPTION…: sets up a build directory, or changes the options of an existing one. A new one compiles several
# sources at a time, which is right for a build from scratch; with -Dunity_sources=false a change recompiles less.
configure() {
  local dir=$1
  shift
  if [[ -f $dir/build.ninja ]]; then
    meson configure "$dir" "$@"
  else
    meson setup "$dir" "$ROOT" -Dunity_sources=true "$@" >/dev/null || {
      tail -n 20 "$dir/meson-logs/meson-log.txt" >&2
      die "the build could not be set up in $dir"
    }
  fi
}

# configure_sanitized DIR SANITIZERS OPTION…: with clang. Optimised a little: compiling takes half as long again, but tests
# run four times as fast.
configure_sanitized() {
  local dir=$1 sanitizers=$2
  shift 2
  use_clang
  # vptr: it reads memory through a pipe, and reports every object as broken when a test has used up the descriptors.
  # function: clang 14 cannot assemble coroutines with it ("Cannot represent a difference across sections").
  configure "$dir" --buildtype=plain -Doptimization=1 -Db_lundef=false -Db_sanitize="$sanitizers" \
    -Dcpp_args='-fno-sanitize=vptr,function -gline-tables-only' -Dtests=true "$@"
}

# compilations: how many at a time: one per processor, if each can have 1.5 GB of memory.
compilations() {
  awk -v processors="$(nproc)" '
    /^MemAvailable:/ { most = int($2 / 1.5e6) }
    END { print most < 1 ? 1 : most < processors ? most : processors }' /proc/meminfo
}

# build DIR [TARGET…]
build() {
  local dir=$1
  shift
  ninja -C "$dir" -j "$(compilations)" "$@" | awk '!/^\[[0-9]+\/[0-9]+\]/ || /FAILED/' >&2
  ((PIPESTATUS[0] == 0)) || die "the build failed"
}
