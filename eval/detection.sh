#!/bin/bash
# How often the detected test is the one that a project's own CI runs: nothing is run.
#   eval/detection.sh DIRECTORY-OF-GIT-REPOSITORIES TABLE
# The repositories are OWNER+NAME/repo. A line of the table, after a heading, holds in columns: OWNER/NAME, the
# commit, a pattern of Perl for a right test, and in column 6 one for the setup that it
# cannot do without, unless it is tox or nox, which make an environment by themselves. Prints a line for each that is wrong, then the sum. GIT_FRITES names another program.
set -u
top=${1:?a directory of git repositories} table=${2:?a table of projects}
program=$(realpath "${GIT_FRITES:-$(dirname "$0")/../target/debug/git-frites}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
command_of() { jq -r --arg stage "$1" '[.commands[] | select(.stage == $stage) | .command | if type == "array" then join(" ") else . end] | first // "none"' "$work/plan"; }
all=0 right=0
while IFS=$'\037' read -r name commit expected _ _ setup _; do
  repo=$top/${name/\//+}/repo
  if ! git -C "$repo" cat-file -e "$commit^{commit}" 2> /dev/null; then
    [ -d "$repo" ] || { echo "$name is not there"; continue; }
    commit=$(git -C "$repo" rev-parse HEAD); echo "$name: its newest commit instead"
  fi
  git clone -q --shared --no-checkout "$repo" "$work/clone" && git -C "$work/clone" update-ref --no-deref HEAD "$commit"
  (cd "$work/clone" && "$program" judge -n --json) > "$work/plan" 2> "$work/errors"
  rm -rf "$work/clone"; all=$((all + 1))
  found=$(command_of test) prepared=$(command_of setup)
  if grep -qP -- "$expected" <<< "$found" && { [ -z "$setup" ] || [[ $found =~ ^(tox|nox)\  ]] || grep -qP -- "$setup" <<< "$prepared"; }; then
    right=$((right + 1))
    [ -z "${VERBOSE-}" ] || printf 'right\t%s\t%s\t(setup: %s)\n' "$name" "$found" "$prepared"
  else
    printf 'WRONG\t%s\t%s\t(setup: %s)\t%s\n' "$name" "$found" "$prepared" "$(head -1 "$work/errors")"
  fi
done < <(tail -n +2 "$table" | tr '\t' '\037') # so that an empty column stays one
echo "$right of $all right"
