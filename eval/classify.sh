#!/bin/bash
# How honest commits of other projects would be judged, by rule: nothing is run.
#   eval/classify.sh DIRECTORY-OF-GIT-REPOSITORIES [COMMITS-OF-EACH]
# Takes the newest commits of each whose subject speaks of a fix and that change tests and something else, and
# has the program's own rules say which are judged once, and which once more, and why.
# CLASSIFY_ALL names a file for the lines of all commits.
set -eu
top=${1:?a directory of git repositories} most=${2:-110}
cd "$(dirname "$0")/.."
program=$(cargo test --locked --lib --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))/\1/p')
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export CLASSIFY_REVISIONS=$work/revisions CLASSIFY_LINES=$work/lines
: > "$work/all"
for repo in "$top"/*/repo; do
  name=$(basename "$(dirname "$repo")")
  git -C "$repo" log --no-merges -i --extended-regexp --grep='^(.*[^a-z])?fix(e[sd])?([^a-z]|$)' --format=%H -n $((most + most / 3)) \
    HEAD -- '*test*' '*Test*' '*spec*' > "$CLASSIFY_REVISIONS"
  CLASSIFY_REPOSITORY=$repo "$program" -q --ignored --exact ops::judge::tests_classify::commits_of_another_project_are_classified \
    > "$work/log" 2>&1 || { echo "$name is left out: $(grep -m1 -A1 panicked "$work/log" | tail -1)" >&2; continue; }
  awk -F '\t' -v OFS='\t' -v name="$name" '$3 > 0 && $2 > $3 { print name, $0 }' "$CLASSIFY_LINES" | head -n "$most" >> "$work/all"
done
cp "$work/all" "${CLASSIFY_ALL:-/dev/null}"
awk -F '\t' '
  { all++; projects[$1]; judged[$5]++
    many += split($7, files, " ") > 4; others += length(files) == 1; several += length(files) > 1
    kind[$9 != "" ? "tests among code that changes, too" : $7 != "" ? "files that are not source" : $8 != "" ? "manifests, builds, scripts, CI" : "source, documents, dependencies and test files alone"]++ }
  END {
    for (name in projects) n++
    printf "%d commits of %d projects\n", all, n
    for (name in kind) printf "%6.1f %%  %s\n", 100 * kind[name] / all, name
    printf "judged once %.1f %%, once more if they come first %.1f %%, twice %.1f %%\n", 100 * judged["once"] / all, 100 * judged["if-first"] / all, 100 * judged["twice"] / all
    printf "with one file that is not source %.1f %%, with several %.1f %%, with more than four %.1f %%\n", 100 * others / all, 100 * several / all, 100 * many / all
  }' "$work/all"
