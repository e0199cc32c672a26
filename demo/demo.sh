#!/bin/sh
# Runs all steps in a temporary repository: six attempts at one fix, one of which cheats, their changes, a verdict,
# and the landing of the smallest attempt that works. Exits non-zero if a step does not do what its text says.
#
# Run it with `make demo`. KEEP=1 keeps the repository.
set -eu

command -v git-frites >/dev/null || { echo "demo: git-frites is not on PATH: run 'make demo'" >&2; exit 1; }

# The caller's environment must not affect the demo, and the demo must not change the caller's files.
for name in $(git rev-parse --local-env-vars; env | sed -n 's/^\(FRITES_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
unset XDG_CONFIG_HOME GIT_EDITOR GIT_TEMPLATE_DIR GIT_EXTERNAL_DIFF
HOME=$(mktemp -d "${TMPDIR:-/tmp}/frites-demo.XXXXXX")
HOME=$(cd "$HOME" && pwd -P)
finish() {
    code=$?
    trap - EXIT
    if [ "${KEEP:-}" = 1 ]; then
        printf '\nKept: cd %s/slug\n' "$HOME"
    else
        cd / && rm -rf "$HOME"
    fi
    exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export HOME XDG_CACHE_HOME="$HOME/.cache" LC_ALL=C GIT_PAGER=cat
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="$HOME/.gitconfig"
cat >"$GIT_CONFIG_GLOBAL" <<'END'
[user]
    name = Demo
    email = demo@example.com
[init]
    defaultBranch = main
[advice]
    detachedHead = false
# The demo is small enough for a nearly full disk.
[frites "limits"]
    min-free-disk = 16MiB
END

fail() {
    printf '\ndemo: %s\n' "$*" >&2
    exit 1
}

# Announces the next step, one sentence per line.
say() { echo && printf '# %s\n' "$@"; }

# run CODE COMMAND: shows the command and its output, and fails on any other exit code.
run() {
    printf '$ %s\n' "$2"
    code=0
    eval "$2" >"$HOME/output" 2>&1 || code=$?
    cat "$HOME/output"
    [ "$code" -eq "$1" ] || fail "'$2' exited $code, not $1"
    [ "$code" -eq 0 ] || printf '(exit %s)\n' "$code"
}

# shows TEXT: fails if the last output does not contain the text.
shows() { grep -qF -e "$1" "$HOME/output" || fail "the output above should show '$1'"; }

mkdir "$HOME/slug" && cd "$HOME/slug"
cat >slug.sh <<'END'
# Prints a title as it stands in a web address: slug 'Hello World' prints hello-world.
slug() {
    printf '%s' "$1" | tr '[:upper:]' '[:lower:]' | tr -c '[:alnum:]' '-'
}
END
cat >test.sh <<'END'
. ./slug.sh
check() { [ "$(slug "$1")" = "$2" ] || { echo "'$1' becomes '$(slug "$1")', not '$2'"; exit 1; }; }
check 'Hello World' hello-world
check 'Git, worktrees & you' git-worktrees-you
echo 'all slugs are right'
END
cat >.frites.toml <<'END'
[oracle]
build = 'for file in *.sh; do sh -n $file || exit; done'
test = "sh test.sh"
END
sed "s/tr -c '/tr -cs '/" slug.sh >"$HOME/right" # the file that must land, byte for byte

# Six attempts. In a real run, a coding agent, a codemod or a person makes them.
cat >"$HOME/attempt.sh" <<'END'
edit() { sed "$1" slug.sh >new && mv new slug.sh; }
case $FRITES_CANDIDATE in
large) # right, but larger than necessary
    cat >slug.sh <<'SLUG'
# Prints a title as it stands in a web address: slug 'Hello World' prints hello-world.
slug() {
    lower=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')
    dashed=$(printf '%s' "$lower" | tr -c '[:alnum:]' '-')
    while :; do
        case $dashed in
        *--*) dashed=${dashed%%--*}-${dashed#*--} ;;
        *) break ;;
        esac
    done
    printf '%s' "$dashed"
}
SLUG
    git commit -q -a -m 'Rewrite slug' ;;
syntax) edit "s/'-'\$/'-/" ;;                # an open quote
wrong) edit "s/:alnum:]' '-'/:alnum:] ' '-'/" ;; # keeps the blanks
small) edit "s/tr -c '/tr -cs '/" ;;         # right, and one letter
cheat) grep -v worktrees test.sh >new && mv new test.sh ;; # deletes the check that fails
idle) ;;                                     # does nothing
esac
END

git init -q && git add -A && git commit -q -m 'Add slug'

say 'A small project with a bug: its test fails.'
run 0 'cat slug.sh'
run 1 'sh test.sh'
say 'Its build and test commands are in .frites.toml. (Cargo, npm, Go, Python and make need no such file.)'
run 0 'cat .frites.toml'

say 'spawn: six attempts, each in a worktree and on a branch of its own, all from the same commit.' \
    'The command could start a coding agent; here a script makes good and bad attempts.'
run 0 'git frites spawn -c large syntax wrong small cheat idle -- sh ~/attempt.sh'
shows '1/idle: empty'
[ "$(git status --porcelain)" = '' ] || fail 'your own checkout should be untouched'

say 'status: all runs and candidates.'
run 0 'git frites status'
shows '1/small'

say 'diff: a summary of each change, and one patch in full.'
run 0 'git frites diff'
run 0 'git frites diff small'
shows "tr -cs '[:alnum:]' '-'"

say 'judge: build and test run on each attempt, in a checkout that contains nothing else.' \
    'An attempt that changes its tests runs once more with those of the base. The smallest change that passes is' \
    'recommended.'
run 0 'git frites judge'
shows 'judge: 3 of 5 passed, but cheat only with its own tests or commands; small changes the fewest lines'
shows '1/cheat with the base'"'"'s tests: test exit 1'
# What `make picture` draws: the same answer, in colour.
[ -z "${PICTURE:-}" ] || {
    printf '\033[1m$ git frites judge\033[0m\n'
    git frites --color=always judge --no-cache 2>/dev/null | awk '{ gsub(/; /, ";\n       ") } 1'
} >"$PICTURE"
run 1 'git frites apply cheat'
shows 'nothing verified to land: 1/cheat passes only with its own tests or commands'

say 'apply: what passed is what lands, on a fresh branch.'
run 0 "git frites apply -m 'Collapse runs of dashes in a slug'"
shows 'frites/apply/1'
run 0 'git show'
shows 'Frites-Run: 1/small@1'
cmp slug.sh "$HOME/right" || fail 'slug.sh is not what was judged'
[ "$(git rev-parse 'HEAD^{tree}')" = "$(git rev-parse 'refs/frites/1/small^{tree}')" ] || fail 'another tree landed'
[ "$(git rev-parse HEAD^)" = "$(git rev-parse main)" ] || fail 'main should not have moved'
run 0 'sh test.sh'
shows 'all slugs are right'

say 'clean: removes worktrees and branches. The captures of all attempts stay under refs/frites/.'
run 0 'git frites clean'
[ ! -e .frites/worktrees/1 ] || fail 'the worktrees should be gone'
[ -z "$(git for-each-ref refs/heads/frites/run)" ] || fail 'the branches should be gone'
run 0 'git log --oneline main..refs/frites/1/large'
shows 'Rewrite slug'

say 'If no attempt passes, judge says so, and nothing lands.'
run 0 'git switch -q main'
run 0 'git frites spawn -q -c syntax wrong -- sh ~/attempt.sh'
run 1 'git frites judge'
shows 'near-miss: none of 2 passed; wrong came closest'
run 1 'git frites apply'
shows 'nothing verified to land'
[ -z "$(git for-each-ref refs/heads/frites/apply/2)" ] || fail 'nothing should have landed'

say 'log: the events of the run.'
run 0 'git frites log 1'
shows 'landed'
git fsck --no-dangling --no-progress || fail 'the repository is damaged'
printf '\nEvery step did what its text says.\n'
