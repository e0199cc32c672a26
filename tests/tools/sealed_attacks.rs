//! Code under test that does damage in its sealed world: nothing of it reaches anybody else.
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::Value;

use crate::common::World;
use crate::common::sealed::sealed;
use crate::tool::{LANDLOCK_SIGNALS, LOOP_DEVICES, NAMESPACES, ORDINARY_USER, PYTHON, trials};
use crate::traces::{assert_untouched, frites_as_ordinary_user, shared_lines, user_files};

trials! {
    filling_the_disk_ends_its_candidate_and_no_other: [NAMESPACES];
    a_command_that_wrote_too_much_before_it_ended_has_not_passed: [NAMESPACES];
    a_command_that_leaves_no_room_for_files_ends_with_its_candidate: [NAMESPACES, LOOP_DEVICES];
    a_fork_bomb_ends_with_its_candidate: [NAMESPACES, ORDINARY_USER];
    signals_to_everything_reach_nobody_else: [NAMESPACES];
    no_process_can_be_traced_and_no_mount_changed: [NAMESPACES, PYTHON];
    deleting_the_home_directory_and_writing_to_seeds_changes_nothing: [NAMESPACES];
    abstract_sockets_of_others_cannot_be_reached: [NAMESPACES, PYTHON, LANDLOCK_SIGNALS];
    a_device_file_outside_of_dev_cannot_be_opened: [NAMESPACES];
    no_command_and_no_attempt_changes_a_device_of_the_machine: [NAMESPACES];
    nothing_of_an_attempt_is_seen_by_commands_that_judge: [NAMESPACES];
    directory_for_temporary_files_of_another_shell_is_named: [NAMESPACES];
    no_command_mounts_cgroups_anew: [NAMESPACES];
    no_command_of_an_ordinary_user_mounts_cgroups_anew: [NAMESPACES, ORDINARY_USER];
}

/// Two candidates: `bad`, whose commands do the damage, and `good`, which is larger.
fn two_candidates() -> World {
    let world = sealed();
    let change = "echo $FRITES_CANDIDATE > README; test $FRITES_CANDIDATE = bad || seq 9 > more";
    world.frites(["spawn", "-c", "bad", "-c", "good", "--", "sh", "-c", change]).expect(0);
    world
}

/// Judges with a test that does `damage` for the bad candidate.
fn judged(world: &World, damage: &str) -> Value {
    let test = format!("if grep -q bad README; then\n{damage}\nfi");
    world.frites(["judge", "--json", "-j", "2", "--test", &test]).expect(0).json()
}

#[track_caller]
fn assert_good_wins(verdict: &Value) {
    assert_eq!(verdict["recommended"], "good", "{verdict:#}");
    assert_eq!(verdict["candidates"][1]["results"][0]["outcome"], "passed");
}

fn filling_the_disk_ends_its_candidate_and_no_other() {
    let mut world = two_candidates();
    world.set_env("FRITES_SANDBOX_DISK", "20MiB");
    let places = ["", "~/", "/tmp/", "/dev/shm/", "$(git rev-parse --git-dir)/"];
    for place in places {
        let fill = format!("while head -c 4M /dev/zero >> {place}filling; do :; done; exit 7");
        let verdict = judged(&world, &fill);
        assert_good_wins(&verdict);
        let result = &verdict["candidates"][0]["results"][0];
        assert_eq!(result["outcome"], "wrote-too-much", "{place}: {result}");
        assert_eq!(result["bytes"], 20 << 20);
    }
    let table = world.frites(["judge", "--replay"]).expect(0).out();
    assert!(table.contains("wrote more than 20.0 MiB"), "{table}");
    world.assert_clean();
}

fn a_command_that_wrote_too_much_before_it_ended_has_not_passed() {
    let mut world = two_candidates();
    world.set_env("FRITES_SANDBOX_DISK", "1MiB");
    let verdict = judged(&world, "head -c 2M /dev/zero > big");
    assert_good_wins(&verdict);
    assert_eq!(verdict["candidates"][0]["results"][0]["outcome"], "wrote-too-much");
}

fn a_command_that_leaves_no_room_for_files_ends_with_its_candidate() {
    let world = sealed();
    let script = r#"
        truncate -s 200M image; mkfs.ext4 -q -F -N 6000 image; mkdir disk; mount -o loop image disk
        mkdir disk/home; export HOME=$PWD/disk/home XDG_CACHE_HOME=$PWD/disk/home/cache
        git init -q -b main disk/repo; cd disk/repo; git config frites.limits.min-free-disk 1
        echo base > README; git add README; git commit -qm base
        git-frites spawn -q -c bad -c good -- sh -c 'seq $FRITES_INDEX > new; echo $FRITES_CANDIDATE > README'
        exec git-frites judge --json -j 1 --test "$1"
    "#;
    let test = "grep -q bad README || exit 0
        while n=$((n+1)); do true > /tmp/$n || sleep 1; done";
    let shell = ["--mount", "sh", "-euc", script, "sh", test];
    let answer = world.run(&world.home(), "unshare", shell).expect(0);
    let json = answer.out();
    let verdict: Value = serde_json::from_str(&json[json.find('{').unwrap()..]).unwrap();
    assert_good_wins(&verdict);
    let result = &verdict["candidates"][0]["results"][0];
    assert_eq!(result["outcome"], "wrote-too-much", "{result}");
    assert!(answer.stderr.contains("1/bad: test made more than "), "{}", answer.stderr);
}

fn a_fork_bomb_ends_with_its_candidate() {
    let mut world = two_candidates();
    world.set_env("FRITES_SANDBOX_PROCESSES", "60");
    let test = "if grep -q bad README; then
            bomb() { bomb | bomb & }; bomb; wait; exit 3
        else
            true | true
        fi";
    let words = ["judge", "--json", "-j", "2", "--test", test];
    let verdict = frites_as_ordinary_user(&world, words).expect(0).json();
    assert_good_wins(&verdict);
    world.assert_clean();
}

fn signals_to_everything_reach_nobody_else() {
    let world = two_candidates();
    let test = r#"
        cd ~/shared
        if grep -q bad "$OLDPWD/README"; then
            while ! test -e started; do :; done
            # All but the first process and the shell itself.
            kill -STOP 1; kill -KILL 1; kill -STOP -1; kill -KILL -1
            echo > attacked
            exit 5
        elif grep -q good "$OLDPWD/README"; then
            echo > started
            while ! test -e attacked; do :; done
        fi"#;
    // The base comes first, and both candidates run at once.
    let answer = world.frites(["judge", "--json", "-j", "2", "--test", test]).expect(0);
    assert_good_wins(&answer.json());
    world.assert_clean();
}

fn no_process_can_be_traced_and_no_mount_changed() {
    let world = two_candidates();
    fs::create_dir(world.home().join(".ssh")).unwrap();
    fs::write(world.home().join(".ssh/id"), "secret").unwrap();
    let before = user_files(&world);
    let script = r#"
        say() { echo "$1" >> ~/shared/reached; }
        python3 -c '
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(0 if libc.ptrace(16, 1, 0, 0) == 0 else 1)' && say "traced the first process"
        for n in 0 1 2 3 4 5 6 7 8 9; do
            readlink /proc/1/fd/$n && say "saw descriptor $n of the first process"
        done
        mount -t tmpfs none /mnt 2>/dev/null && say "mounted"
        mount -o remount,rw / 2>/dev/null && say "made / writable"
        umount ~/.ssh 2>/dev/null && say "uncovered the keys"
        unshare --user --map-root-user --mount --pid --fork sh -c '
            echo x > ~/shared/nested
            mount -o remount,rw / 2>/dev/null && echo remounted
            umount -l ~/.ssh 2>/dev/null; cat ~/.ssh/id 2>/dev/null
            touch /usr/reached 2>/dev/null && echo wrote
            for p in /proc/[0-9]*/root; do touch $p/usr/reached 2>/dev/null && echo wrote there; done
        ' >> ~/shared/reached 2>/dev/null
        touch /usr/reached 2>/dev/null && say "wrote to /usr"
        true"#;
    judged(&world, script);
    assert_eq!(shared_lines(&world, "nested")[0], "x", "a namespace was made inside");
    assert_eq!(shared_lines(&world, "reached"), [""; 0]);
    assert_untouched(&world, &before);
    world.assert_clean();
}

fn deleting_the_home_directory_and_writing_to_seeds_changes_nothing() {
    let mut world = two_candidates();
    world.write(".git/info/exclude", "node_modules\ndata\n");
    world.write("node_modules/left/index.js", "mine");
    world.write("data/table", "mine");
    world.set_env("FRITES_SEED_LINK", "node_modules");
    world.set_env("FRITES_SEED_COPY", "data");
    let before = user_files(&world);
    let script = r#"
        grep -q mine node_modules/left/index.js data/table || exit 9
        echo evil > node_modules/left/index.js; echo evil > data/table; ln -f data/table data/other
        chmod -R a+rwx node_modules data; rm -rf node_modules data .git
        rm -rf ~ "$PWD" 2>/dev/null
        true"#;
    let verdict = judged(&world, script);
    assert_eq!(verdict["recommended"], "bad", "{verdict:#}");
    assert_untouched(&world, &before);
    world.git(["fsck", "--strict"]);
    world.assert_clean();
}

fn abstract_sockets_of_others_cannot_be_reached() {
    let world = two_candidates();
    let name = format!("frites-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    // Whoever connects is not waited for.
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let script = format!(
        r#"python3 -c '
import os, socket
def tried(name):
    try:
        socket.socket(socket.AF_UNIX).connect("\0" + name)
        return "reached"
    except PermissionError:
        return "refused"
own = socket.socket(socket.AF_UNIX)
own.bind("\0own-{name}")
own.listen()
print(tried("own-{name}"), tried("{name}"), file=open(os.path.expanduser("~/shared/tried"), "w"))
'"#
    );
    judged(&world, &script);
    assert_eq!(shared_lines(&world, "tried"), ["reached refused"]);
    world.assert_clean();
}

fn a_device_file_outside_of_dev_cannot_be_opened() {
    let world = two_candidates();
    // Fields: mount point, options.
    let script = "while read -r _ _ _ _ at options _; do echo \"$at $options\"; done \
                  < /proc/self/mountinfo | grep '^/ ' > ~/shared/mounts";
    judged(&world, script);
    let mounts = shared_lines(&world, "mounts");
    assert!(mounts.iter().all(|line| line.contains("nodev") && line.contains("ro,")), "{mounts:?}");
    assert!(!mounts.is_empty());
}

/// A cgroup that is mounted in a new namespace can be written to by the user who owns it.
const MOUNT_CGROUPS: &str = r#"
    unshare --user --map-root-user --mount true || exit 8
    ! unshare --user --map-root-user --mount --cgroup true 2> refusal || exit 9
    grep -q 'unshare failed: No space left on device' refusal || { cat refusal; exit 10; }
    ! unshare --user --map-root-user --mount mount -t cgroup2 none /mnt || exit 11
    ! grep ' cgroup2\? ' /proc/self/mounts | grep -v ' ro,' || exit 12"#;

fn no_command_mounts_cgroups_anew() {
    let verdict = judged(&two_candidates(), MOUNT_CGROUPS);
    assert_eq!(verdict["recommended"], "bad", "{verdict:#}");
}

fn no_command_of_an_ordinary_user_mounts_cgroups_anew() {
    let world = two_candidates();
    let words = ["judge", "--json", "--test", MOUNT_CGROUPS];
    let verdict = frites_as_ordinary_user(&world, words).expect(0).json();
    assert_eq!(verdict["recommended"], "bad", "{verdict:#}");
}

/// Root owns the devices. They are given the modes that they have, so a failure of this test
/// changes nothing.
fn no_command_and_no_attempt_changes_a_device_of_the_machine() {
    let mut world = sealed();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    let devices = r#"for device in /dev/null /dev/full /dev/stdin; do
        echo >/dev/null && test -w /dev/null || exit 8
        ! chmod "$(stat -Lc %a $device)" $device || exit 9
    done"#;
    let attempt = format!("echo 1 > README\n{devices}");
    let words = ["run", "-n", "1", "--test", devices, "--", "sh", "-c", &attempt];
    let answer = world.frites(words).expect(0);
    assert!(answer.stderr.contains("1/c1: test passed"), "{}", answer.stderr);
}

fn nothing_of_an_attempt_is_seen_by_commands_that_judge() {
    let world = sealed();
    let root = world.home().join("worktrees");
    world.git(["config", "frites.spawn.worktree-root", &root.display().to_string()]);
    world.frites(["spawn", "-n", "2", "--", "sh", "-c", "echo $FRITES_CANDIDATE > file"]).expect(0);
    world.git(["fetch", "-q", ".", "refs/frites/*:refs/frites-fetched/origin/*"]);
    let test = format!(
        "git rev-parse HEAD && ! git rev-parse -q --verify refs/frites/1/c1 &&
         git for-each-ref | grep refs/heads/main && ! git for-each-ref | grep frites &&
         ! (cd \"$(git rev-parse --git-common-dir)\" && grep -r frites packed-refs info *refs) && ! ls {}/*/* \"$(git rev-parse --git-common-dir)\"/worktrees/*/gitdir",
        root.display()
    );
    let judge = || world.frites(["judge", "--no-cache", "--test", &test]).expect(0);
    judge();
    world.git(["pack-refs", "--all", "--prune"]);
    world.git(["update-server-info"]);
    fs::write(world.repo.join(".git/info/refs_Xy7Z1a"), "x\trefs/frites/1/c1\n").unwrap();
    fs::write(world.repo.join(".git/frites-changing-refs"), "refs/frites/1/c1\n").unwrap();
    judge();
    world.assert_clean();
}

fn directory_for_temporary_files_of_another_shell_is_named() {
    let mut world = sealed();
    let directory = world.home().join("temporary");
    fs::create_dir(&directory).expect("made");
    let usual = std::env::temp_dir();
    world.set_env("FRITES_SPAWN_GUARD", "required");
    world.set_env("TMPDIR", &directory);
    let change = "echo x > file; echo x > $TMPDIR/x";
    world.frites(["spawn", "-c", "a", "--", "sh", "-c", change]).expect(0);
    let judge = |world: &World| world.frites(["judge", "--no-cache", "--test", "true"]);
    judge(&world).expect(0);
    world.set_env("TMPDIR", usual);
    let words = "which attempts may write, so the result is not verified";
    let answer = judge(&world).expect(3);
    assert!(answer.stderr.contains(words), "{}", answer.stderr);
}
