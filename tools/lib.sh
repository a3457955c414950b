# shellcheck shell=bash disable=SC2034  # sourced: its variables are used elsewhere
# Shared by quickstart, test and the gate. To be sourced by bash, with the working directory anywhere.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$ROOT/build

# Where the developer has ccache, meson uses it; let it hit from any checkout.
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

# packages SECTION…: the names that tools/packages lists there.
packages() {
  awk -v wanted=" $* " '
    /^\[/ { on = index(wanted, " " substr($0, 2, length($0) - 2) " "); next }
    /^[^#]/ && on' "$ROOT/tools/packages"
}

# install_packages SECTION…: installs what is missing, and asks for new package lists only when the ones here won't do.
install_packages() {
  local name missing=()
  for name in $(packages "$@"); do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  step "Installing ${#missing[@]} packages: ${missing[*]}"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o Dpkg::Use-Pty=0)
  local install=("${apt[@]}" install -y --no-install-recommends "${missing[@]}")
  local log
  log=$(mktemp)
  if ! as_root "${install[@]}" </dev/null >"$log" 2>&1; then
    { as_root "${apt[@]}" update && as_root "${install[@]}"; } </dev/null >"$log" 2>&1 || {
      tail -n 20 "$log" >&2
      die "the packages could not be installed" "the whole output: $log"
    }
  fi
  rm -f "$log"
}

# configure DIR OPTION…: sets up a build directory, or changes the options of the one that is there.
configure() {
  local dir=$1
  shift
  if [[ -f $dir/build.ninja ]]; then
    meson configure "$dir" "$@"
  else
    meson setup "$dir" "$ROOT" "$@" >/dev/null || {
      tail -n 20 "$dir/meson-logs/meson-log.txt" >&2
      die "the build could not be set up in $dir"
    }
  fi
}

# build DIR [TARGET…]
build() {
  local dir=$1
  shift
  ninja -C "$dir" -j "$(nproc)" "$@" | awk '!/^\[[0-9]+\/[0-9]+\]/ || /FAILED/' >&2
  ((PIPESTATUS[0] == 0)) || die "the build failed"
}
