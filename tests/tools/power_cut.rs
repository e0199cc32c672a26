//! Power cuts while something lands, and right after it, on an ext4 in a file that is copied as it
//! is.
use crate::common::World;
use crate::tool::{LOOP_DEVICES, STRACE, trials};

trials! {
    branch_is_whole_after_a_power_cut_at_any_moment: [LOOP_DEVICES];
    landing_waits_for_the_directories_of_refs_before_it_is_told: [LOOP_DEVICES, STRACE];
}

/// The number of landings; `make test-power` makes the scoreboard's.
fn rounds() -> u32 {
    std::env::var("FRITES_TEST_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(4)
}

/// Lands on a fresh branch and by a merge, and undoes both, in turn. The journal writes names, as
/// it does every few seconds, and no content: a file that nobody synced is empty in the copy. So
/// are the objects of the user's and the attempt's own commits, unless the landing takes care of
/// them.
fn branch_is_whole_after_a_power_cut_at_any_moment() {
    let world = World::empty("cut");
    let script = r#"
        truncate -s 96M image
        mkfs.ext4 -q -F image
        mkdir disk
        mount -o loop,commit=300 image disk
        git init -q -b main disk/repo
        cd disk/repo
        echo base > base; git add base; git commit -qm base
        cd ../..
        sync -f disk
        cuts=0 broken=0
        is_whole() (
            cd disk/repo || exit 1
            main=$(git rev-parse main) && { test $main = $1 || test $main = $2; } || exit 1
            marks=$(git for-each-ref --format='%(refname)' refs/heads/b 'refs/frites/*/@landing')
            # Before the landing comes to its branch, that is as the user's own git left it.
            test "$3" != ended && test $main = $1 || marks="main $marks"
            for name in $marks; do git rev-list --objects $name > /dev/null || exit 1; done
            test -z "$(find .git/refs/heads/main .git/refs/frites -empty -type f)" || exit 1
            git rev-list --objects main > /dev/null 2>&1 || exit 0
            git status --porcelain > /dev/null && git frites status > /dev/null &&
                test $(git rev-parse main) = $main
        )
        cut() {
            dd if=/dev/zero of=disk/other bs=1 count=1 conv=fsync,notrunc status=none
            cp --sparse=always image copy
            mount -o loop copy disk
            cuts=$((cuts + 1))
            is_whole "$@" || { broken=$((broken + 1)); echo "broken: round $round, $3"; }
            umount disk
        }
        for round in $(seq ROUNDS); do
            cd disk/repo
            if test $((round % 2)) = 1; then
                git switch -q main
                attempt="echo $round >> attempt; git add -A; git commit -qm attempt"
                git frites spawn -q -n 1 -- sh -c "$attempt" > /dev/null
                echo $round >> base; git commit -qam "by the user"
                git frites judge -q --test 'test -e attempt' > /dev/null
            fi
            case $((round % 4)) in
            1) set -- apply -m landed --branch b/$round ;;
            3) set -- apply --merge ;;
            *) set -- apply --undo ;;
            esac
            before=$(git rev-parse main)
            setsid git frites "$@" > "$HOME/said" 2>&1 &
            landing=$!
            cd ../..
            sleep 0.$(shuf -i 0-3 -n 1)$(shuf -i 0-99 -n 1)
            if kill -STOP -$landing 2> /dev/null; then
                cut $before $(git -C disk/repo rev-parse main) 'at work'
                kill -CONT -$landing
            fi
            wait $landing || { cat said >&2; exit 1; }
            after=$(git -C disk/repo rev-parse main)
            cut $after $after ended
        done
        umount disk
        echo "$broken of $cuts broken"
    "#;
    let script = script.replace("ROUNDS", &rounds().to_string());
    let answer = world.run(&world.home(), "unshare", ["--mount", "sh", "-euc", &script]).expect(0);
    let out = answer.out();
    assert!(out.starts_with("0 of "), "{out}{}", answer.stderr);
}

/// The journal of ext4 takes all names along. Other file systems wait for nothing that nobody asked
/// for.
fn landing_waits_for_the_directories_of_refs_before_it_is_told() {
    let world = World::empty("cut");
    let script = r#"
        truncate -s 96M image
        mkfs.ext4 -q -F image
        mkdir disk
        mount -o loop image disk
        git init -q -b main disk/repo
        cd disk/repo
        echo base > base; git add base; git commit -qm base
        git frites spawn -q -n 1 -- sh -c 'echo work > work' > /dev/null
        git frites judge -q --test 'test -e work' > /dev/null
        strace -f -y -o "$HOME/calls" -e rename,fsync git frites apply --merge
        cd "$HOME"
        umount disk
        cat calls
    "#;
    let answer = world.run(&world.home(), "unshare", ["--mount", "sh", "-euc", script]).expect(0);
    let calls = answer.out();
    let (before, after) = calls.split_once("refs/heads/main.lock\", ").expect("the branch moves");
    assert!(before.contains("refs/heads/main.lock>)"), "{calls}");
    for path in ["refs/heads", "refs/frites/1/@landing", "logs/refs/heads/main", ".git"] {
        let synced = after.lines().any(|call| {
            call.contains("fsync(") && call.split('>').next().is_some_and(|at| at.ends_with(path))
        });
        assert!(synced, "{path}: {calls}");
    }
}
