#!/bin/sh
# Runs the tests whose subject is how commands are judged and run in each world of this machine but the one in which
# `cargo test --test runner` runs them: the best one, or the open one for OF_EVERY_WORLD of tests/common/mod.rs
# (FRITES_TEST_WORLD names another). Says which worlds the machine has not. Arguments choose other tests, as with
# `cargo test`.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
program=${CARGO_TARGET_DIR:-target}/debug/git-frites
in_best=
[ $# -gt 0 ] || { set -- judge:: process:: shard::; in_best='judge::detect:: judge::source:: shard::'; }
$cargo build --quiet --locked

# True if `git frites doctor` finds all of these on this machine.
found=$("$program" doctor || true)
has() {
    for what; do
        printf '%s\n' "$found" | grep -q "^ok  *$what " || return 1
    done
}

# From the best one on, as in tests/common/mod.rs.
worlds=
if has namespaces overlay; then worlds="$worlds sealed"; else missing="${missing-} sealed"; fi
if has Landlock; then worlds="$worlds landlock"; else missing="${missing-} landlock"; fi
worlds="$worlds open"
best=$(echo $worlds | cut -d ' ' -f 1)
run() {
    world=$1
    shift
    echo "tests in the world '$world':"
    FRITES_TEST_WORLD=$world $cargo test --quiet --locked --test runner -- "$@"
}
[ -z "$in_best" ] || [ "$best" = open ] || run "$best" $in_best
for other in $worlds; do
    [ "$other" = "$best" ] || run "$other" "$@"
done
for world in ${missing-}; do
    echo "not tested: this machine has no world '$world'; \`git frites doctor\` says why" >&2
done
