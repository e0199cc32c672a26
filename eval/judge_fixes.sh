#!/bin/bash
# How honest commits of another project are judged: each one is the only attempt of a run at its parent.
#   eval/judge_fixes.sh REPOSITORY N [TEST-COMMAND [GREP]]
# Takes commits that are no merges and change both source and tests, newest first, until N pass with their own tests.
# Prints for each: commit, decision, "verified" or the reason, seconds. "dropped" is one that fails as its author left
# it, also outside a sealed world. REPOSITORY is a clone for this purpose, with the dependencies of its newest commit
# installed. Without TEST-COMMAND, or with an empty one, the commands that git-frites detects judge. With GREP, only
# commits whose subject matches it (extended, in any case), or that close an issue. The runs stay, with their logs.
set -euo pipefail
repo=${1:?a clone of a repository} most=${2:?a number of commits} subject=${4-} options=()
[[ -z ${3-} ]] || options=(--test "$3")
cd "$repo"

changes_source_and_tests() {
  local paths
  paths=$(git diff-tree -r --no-commit-id --name-only "$1")
  grep -qE 'test|spec' <<<"$paths" && grep -vE 'test|spec' <<<"$paths" | grep -qE '\.(c|go|h|js|py|rb|rs|ts)$'
}

is_asked_for() {
  [[ -z $subject ]] || grep -qiE "$subject" <<<"$(git show -s --format=%s "$1")" ||
    grep -qiE '\b(fixes|closes|resolves) #[0-9]' <<<"$(git show -s --format=%B "$1")"
}

judge() {
  git frites judge --json --timeout 10m "${options[@]}" "fix-$1" 2> "$log" > "$verdict" || true
}

verdict=$(mktemp) log=$(mktemp) judged=0
trap 'rm -f "$verdict" "$log"' EXIT
while ((judged < most)) && read -r commit; do
  is_asked_for "$commit" || continue
  changes_source_and_tests "$commit" || continue
  git frites spawn -q --run "fix-$commit" --base "$commit^" -c fix -- git cherry-pick -n "$commit" > "$log" 2>&1
  start=$SECONDS
  judge "$commit"
  decision=$(jq -r .decision "$verdict") reason=
  if [[ $decision != single && $decision != own-tests ]]; then
    reason=$(jq -r .rationale "$verdict")
    FRITES_SANDBOX_MODE=off judge "$commit"
    [[ $(jq -r '.passed | length' "$verdict") != 0 ]] || decision=dropped
  elif [[ $(jq -r .verified "$verdict") = true ]]; then
    reason=verified
  fi
  [[ $decision = dropped ]] || ((judged += 1))
  printf '%s\t%s\t%s\t%s\n' "$commit" "$decision" "${reason:-$(jq -r .rationale "$verdict")}" $((SECONDS - start))
  git frites clean -q "fix-$commit" 2> "$log" || true
done < <(git log --no-merges --min-parents=1 --format=%h)
