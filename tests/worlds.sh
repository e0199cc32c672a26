#!/bin/sh
# Runs tests/runner.rs once in each world that this machine has for commands that judge (FRITES_TEST_WORLD), and
# says which worlds it has not. Arguments choose tests, as with `cargo test`. `--confined` leaves out the open world,
# tests that are about it, and tests without a word of judging.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
program=${CARGO_TARGET_DIR:-target}/debug/git-frites
$cargo build --quiet --locked

worlds=open
if [ "${1-}" = --confined ]; then
    shift
    worlds=
    # A test begins with its attribute, and the next item begins after it.
    names=$(awk '
        FNR == 1 { name = ""; module = FILENAME; gsub(/.*\/|\.rs$/, "", module) }
        /^#\[test\]/ { awaited = 1 }
        awaited && /^fn / { name = $2; sub(/\(.*/, "", name); awaited = 0 }
        /in_the_open_world\(\)/ { name = "" }
        name != "" && /judge|apply|"run"/ { print module "::" name; name = "" }
        /^}/ { name = "" }
    ' tests/test_*.rs)
    set -- --exact "$@" $names
fi

# True if `git frites doctor` finds all of these on this machine.
has() {
    for what; do
        printf '%s\n' "$found" | grep -q "^ok  *$what " || return 1
    done
}

found=$("$program" doctor || true)
if has namespaces overlay; then worlds="$worlds sealed"; else missing="${missing-} sealed"; fi
if has Landlock; then worlds="$worlds landlock"; else missing="${missing-} landlock"; fi
for world in $worlds; do
    echo "tests in the world '$world':"
    FRITES_TEST_WORLD=$world $cargo test --quiet --locked --test runner -- "$@"
done
for world in ${missing-}; do
    echo "not tested: this machine has no world '$world'; \`git frites doctor\` says why" >&2
done
