# shellcheck shell=bash
# The set-up that tools/start, tools/test, tools/bench, tools/bench-gpus and .ci/run share; sourced, never run.
#
# What it says goes to standard error, so that standard output belongs to the report of the tool that sources it.

set -euo pipefail
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
exec </dev/null  # nothing in here may wait for an answer

root=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
targets=(all)
# What a build takes in all, in seconds of a processor of 2.5 GHz: the main job, and the rest of the tests.
# shellcheck disable=SC2034 # read by what sources this
build_seconds=560 test_seconds=1300
# Sections of tools/packages with which tools/test --everything leaves nothing out.
# shellcheck disable=SC2034 # read by what sources this
extra_sections=(shells viewer mpi camera strangers python bench simgrid)

# Megabytes that programs may still take: what is free, or what this container has left.
free_memory() {
  local free limit
  free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null || true)
  free=$((${free:-0} / 1024))
  if limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null) && [[ $limit != max ]]; then
    limit=$(((limit - $(cat /sys/fs/cgroup/memory.current)) / 1048576))
    if ((limit < free || !free)); then free=$limit; fi
  fi
  printf '%s\n' "$free"
}

# Sources are compiled as one, twenty at a time: that takes less than half the time, and up to 2.4 GB a compiler, of which
# `meson test` starts two more than there are cores; ten take 1.6 GB, three 0.8. As many compilers work as there are cores and
# memory for them.
megabytes=$(free_memory)
((megabytes)) || megabytes=4000 # a bare root without /proc
cores=$(nproc)
unity=(--unity=on --unity-size=20) each=2400
if ((megabytes < each * (cores + 2))); then unity=(--unity=on --unity-size=10) each=1600; fi
if ((megabytes < each)); then unity=(--unity=on --unity-size=3) each=800; fi
jobs=${JOBS:-$((megabytes / each < cores ? (megabytes / each > 0 ? megabytes / each : 1) : cores))}
# Options of the build under AddressSanitizer and UndefinedBehaviorSanitizer, in which the fuzzers of tests/fuzz run too.
# Warnings are errors in other builds; with sanitizers in, GCC warns of what is not there. A report needs line numbers,
# not more about each variable, and AddressSanitizer sees what comes of bad pointers: with either, compiling would take
# twice as long. Ten sources are compiled as one. A `char` has no sign in it, as on arm64: comparisons that are always true
# there are errors, and the tests see what else depends on the sign.
# shellcheck disable=SC2034 # read by what sources this
sanitized=(-Dcuda=disabled -Dfuzz=true -Dmpi=disabled -Dcamera=disabled -Dmanual=disabled -Doptimization=g -Dwarning_level=0
  "-Dcpp_args=-g1 -funsigned-char -Werror=type-limits -D_GLIBCXX_ASSERTIONS -DEIGEN_NO_DEBUG -fno-sanitize=null,alignment,vptr,object-size"
  -Db_sanitize=address,undefined -Db_lundef=false)

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# value_behind OPTION [VALUE]...: a sentence and exit code 2 where nothing stands behind the option.
value_behind() {
  if [[ -z ${2:-} ]]; then
    say "$1 wants a value; see tools/${0##*/} --help"
    exit 2
  fi
}

# The header comment of the tool that was called is its help.
help_wanted() {
  case ${1:-} in
    -h | --help)
      sed -n '2,/^\([^#]\|$\)/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
  esac
}

# packages_in SECTION...: what these sections of tools/packages list, a line each; `a|b` where either will do.
packages_in() {
  local line word section='' wanted=" $* "
  while IFS= read -r line || [[ -n $line ]]; do
    word=${line%%#*}
    word=${word//[[:space:]]/}
    if [[ $word == '['*']' ]]; then
      section=${word:1:-1}
    elif [[ -n $word && $wanted == *" $section "* ]]; then
      printf '%s\n' "$word"
    fi
  done <"$root/tools/packages"
}

# missing_of PACKAGE...: those that are not installed. A command of the same name will do: npm comes with some nodejs.
missing_of() {
  local package installed names
  read -ra names <<<"${*//|/ }"
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${names[@]}" 2>/dev/null || true)
  for package in "$@"; do
    grep -qxE -- "(${package//+/[+]}) installed" <<<"$installed" || command -v -- "$package" >/dev/null || printf '%s\n' "$package"
  done
}

# missing_in SECTION...: what is missing of these sections.
missing_in() {
  local listed
  # Words in variables, not process substitution, which needs /proc: a bare root may have none.
  read -ra listed <<<"$(packages_in "$@" | tr '\n' ' ')"
  missing_of "${listed[@]}"
}

# install_packages SECTION...: installs what is missing of these sections; apt is called only when something is.
# Returns 3 when something stays missing.
install_packages() {
  local missing chosen=() entry name costs
  if ! command -v dpkg-query >/dev/null; then
    say "this is neither Debian nor Ubuntu: going on, and trusting that what tools/packages lists is installed"
    return 0
  fi
  read -ra missing <<<"$(missing_in "$@" | tr '\n' ' ')"
  ((${#missing[@]})) || return 0
  if (($(id -u) != 0)); then
    say "packages are missing, and only root can install them:"
    printf '  apt-get install --no-install-recommends %s\n' "${missing[*]%%|*}" >&2
    return 3
  fi
  local options=(-q -y -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3)
  apt-get "${options[@]}" update >&2 || say "apt-get update failed; trying with the lists that are there"
  for entry in "${missing[@]}"; do # of those that will do, the first that this release has
    for name in ${entry//|/ }; do
      if apt-cache show "$name" >/dev/null 2>&1; then break; fi
      name=''
    done
    chosen+=("${name:-${entry%%|*}}")
  done
  costs=$(apt-get --assume-no install --no-install-recommends "${chosen[@]}" 2>/dev/null |
    sed -nE 's/^Need to get ([^/]*[kMG]B)[ /].*/\1 to fetch/p; s/^After this operation, (.*) of additional .*/\1 on disk/p' | paste -sd, -) || true
  say "installing ${chosen[*]}${costs:+: ${costs//,/, }}"
  if ! apt-get "${options[@]}" install --no-install-recommends "${chosen[@]}" >&2; then
    say "apt-get could not install what is missing:"
    printf '  apt-get install --no-install-recommends %s\n' "${chosen[*]}" >&2
    return 3
  fi
}

# build_folder NAME: the path of a build folder; a name is one in the source tree. A sentence where nothing can be written.
build_folder() {
  local folder=$1
  [[ $folder == /* ]] || folder=$root/$folder
  if ! mkdir -p -- "$folder" 2>/dev/null || [[ ! -w $folder ]]; then
    say "cannot write in $folder; --folder /another/place builds elsewhere"
    return 2
  fi
  printf '%s\n' "$folder"
}

# configured_folder NAME: the path of a build folder that is there. A sentence where there is none.
configured_folder() {
  local folder
  folder=$(realpath -m -- "$1")
  if [[ ! -f $folder/build.ninja ]]; then
    say "$folder is no build folder that Meson has configured"
    return 2
  fi
  printf '%s\n' "$folder"
}

# build_in FOLDER [MESON OPTION...]: builds $targets in FOLDER, a path. Configures it first where that is not done yet, or was
# done with other options than those given; starts it afresh where it belongs to a tree in another place, or to another
# version of Meson, which cannot read it.
build_in() {
  local folder=$1 configured_for='' owner options
  shift
  owner="$root with Meson $(meson --version)"
  options=$(printf '%s\n' "$@")
  # nvcc is often installed without being on the PATH.
  if ! command -v nvcc >/dev/null && [[ -x /usr/local/cuda/bin/nvcc ]]; then PATH=$PATH:/usr/local/cuda/bin; fi
  # Our note in the folder: its owner, then the options. A folder configured by hand has none, and is taken as it is.
  local note=$folder/.configured-by-tools
  if [[ -f $note ]]; then configured_for=$(<"$note"); fi
  if [[ -n $configured_for && ${configured_for%%$'\n'*} != "$owner" ]]; then
    say "$folder was built in another place or by another Meson: starting it afresh"
    rm -rf -- "$folder"
  fi
  if [[ ! -f $folder/build.ninja ]]; then
    meson setup "${unity[@]}" "$@" "$folder" "$root" >&2
    printf '%s\n' "$owner" "$options" >"$note"
  elif (($#)) && [[ $configured_for != "$owner"$'\n'"$options" ]]; then
    meson setup --reconfigure "$@" "$folder" "$root" >&2
    printf '%s\n' "$owner" "$options" >"$note"
  fi
  ninja -C "$folder" -j "$jobs" "${targets[@]}" >&2
}
