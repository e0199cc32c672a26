//! The tools that tests need, and the tests as trials that look for their tools first.
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};

use crate::common::{Answer, World, answer};

/// A tool that a test needs.
pub struct Tool {
    /// A shell command that succeeds where the tool can be used.
    probe: &'static str,
    /// The reason for which tests are ignored where it cannot.
    missing: &'static str,
}

macro_rules! tools {
    ($($name:ident: $probe:expr, $missing:expr;)*) => {
        $(pub const $name: Tool = Tool { probe: $probe, missing: $missing };)*
    };
}

/// The directory of Python packages that hold schemas of engines' files.
macro_rules! published {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/schemas")
    };
}
pub const PUBLISHED: &str = published!();

/// The directory of test runners for node.
macro_rules! runners {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/runners/node_modules")
    };
}
pub const RUNNERS: &str = runners!();

/// The directory of coding agents.
macro_rules! agents {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/agents/node_modules")
    };
}
pub const AGENTS: &str = agents!();

/// The directory of programs that cargo has installed for the tests.
macro_rules! tools_of_cargo {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/tools")
    };
}
pub const TOOLS: &str = tools_of_cargo!();

/// The directory of a Debian system.
macro_rules! fresh_root {
    () => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/target/root")
    };
}

/// The probe for a coding agent, and where it belongs.
macro_rules! agent {
    ($name:literal) => {
        concat!("HOME=$PWD '", agents!(), "/.bin/", $name, "' --version")
    };
}

tools! {
    APPARMOR: concat!("chroot '", fresh_root!(), "' apparmor_parser --version"), "no Debian system with apparmor is in target/root, or this is not root";
    BASH_COMPLETION: "test -e /usr/share/bash-completion/bash_completion", "bash-completion is not installed";
    CARGO_DEB: concat!("'", tools_of_cargo!(), "/bin/cargo-deb' --version && cargo --version"), "cargo-deb is not in target/tools";
    CARGO: "cargo --version", "cargo is not installed";
    CLAUDE: agent!("claude"), "Claude Code is not in target/agents";
    CODEX: agent!("codex"), "Codex is not in target/agents";
    GEMINI: agent!("gemini"), "Gemini CLI is not in target/agents";
    OPENCODE: agent!("opencode"), "OpenCode is not in target/agents";
    CC: "cc --version", "no C compiler is installed";
    CASE_SENSITIVE_DISK: ": > a && ! test -e A", "names that differ in case alone are one file on this disk";
    CHROMIUM: "chromium --headless --no-sandbox --disable-gpu --dump-dom about:blank | grep -q html", "Chromium is not installed, or does not start here";
    FILEFRAG: "command -v filefrag", "filefrag is not installed";
    EXUNIT: "mix --version", "elixir is not installed";
    FAKETIME: "faketime -f -300s git-frites --version", "faketime is not installed";
    FISH: "fish --version", "fish is not installed";
    FRESH_ROOT: concat!("chroot '", fresh_root!(), "' git --version"), "no Debian system is in target/root, or this is not root";
    GIT_BASH_COMPLETION: FIND_GIT_BASH_COMPLETION, "git's completion for bash is not installed";
    GO: "go version", "go is not installed";
    GOTESTSUM: "go version && gotestsum --version", "go or gotestsum is not installed";
    GRADLE: "gradle --version && test -e /usr/share/java/junit4.jar", "gradle or JUnit is not installed";
    IMMUTABLE_FILE: "touch file && chattr +i file && ! rm -f file && chattr -i file", "`chattr +i` does not work here";
    JAVA: "javac -version && java -version", "no Java compiler is installed";
    JEST: concat!("npm --version && '", runners!(), "/.bin/jest' --version"), "npm is not installed, or jest is not in target/runners";
    JQ: "jq --version", "jq is not installed";
    LANDLOCK: "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 3)'",
        "the kernel has no Landlock of version 3 or newer, or python3 is not installed";
    LANDLOCK_SIGNALS: "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 6)'",
        "the kernel has no Landlock of version 6 or newer, or python3 is not installed";
    LOOP_DEVICES: "truncate -s 8M image; mkfs.ext4 -q -F image && unshare --mount mount -o loop image .",
        "no ext4 in a file can be made and mounted here: that takes root and e2fsprogs";
    MAKE: "make --version", "make is not installed";
    MAN: "command -v man", "man is not installed";
    // macOS has another man.
    MAN_DB: "man --version | grep -q 'man 2'", "man-db is not installed";
    MANDOC: "command -v mandoc", "mandoc is not installed";
    MAVEN: "mvn --version && javac -version && test -e /usr/share/maven-repo/org/apache/maven/surefire/surefire-junit4",
        "Maven or a plugin that it needs is not installed";
    MOCHA: concat!("npm --version && '", runners!(), "/.bin/mocha' --version"), "npm is not installed, or mocha is not in target/runners";
    NAMESPACES: "mkdir lower upper work at && unshare --user --map-root-user --mount --pid --ipc --fork sh -euc '
            mount -t overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work overlay at; mount -t proc proc /proc'",
        "`unshare` cannot make namespaces, or mount an overlay in them";
    NODE: "node --version", "node is not installed";
    NEXTEST: "cargo nextest --version", "cargo-nextest is not installed";
    NPM: "npm --version", "npm is not installed";
    ORDINARY_USER: "test $(id -u) != 0 || setpriv --reuid 1000 --regid 1000 --clear-groups git-frites --version",
        "root cannot start the program as another user here";
    PARALLEL: "parallel --version | grep -q GNU", "GNU parallel is not installed";
    PHPUNIT: "phpunit --version", "phpunit is not installed";
    PROVE: "prove --version && perl -MTest::More -e 1", "Perl's prove or Test::More is not installed";
    PYTEST: "pytest --version", "pytest is not installed";
    PYTHON: "python3 --version", "python3 is not installed";
    PYTHON_YAML: "python3 -c 'import yaml'", "python3 has no module yaml";
    READ_ONLY_MOUNT: "unshare -rm sh -euc 'mount --bind . .; mount -o remount,ro,bind .; cd \"$PWD\"; ! touch x'",
        "`unshare -rm` cannot mount a directory read-only here";
    REFLINKS: "echo > a && cp --reflink=always a b", NO_DISK_WITH_REFLINKS;
    RSPEC: "rspec --version", "rspec is not installed";
    SCHEMAS: concat!("PYTHONPATH='", published!(), "' python3 -c 'import check_jsonschema, kubernetes_validate'"),
        "the packages check-jsonschema and kubernetes-validate are not in target/schemas";
    SECCOMP: "test -e /proc/sys/user/max_user_namespaces && python3 -c 'import sys; sys.exit(sys.maxsize < 2**32)' && grep -q Seccomp: /proc/self/status",
        "no system calls can be refused here";
    // Its daemons run as one user, and start tasks as any.
    SLURM: "command -v munged slurmctld slurmd sbatch && test $(id -u) = 0", "Slurm is not installed, or this is not root";
    SSH_KEYGEN: "ssh-keygen -q -t ed25519 -N '' -f key",
        "ssh-keygen is not installed";
    STRACE: "strace -f -o calls true", "strace is not installed, or may trace nothing here";
    // The exit code shows that the options are those of util-linux, too.
    TERMINAL: "script -qec 'exit 7' /dev/null; test $? = 7", "`script` cannot make a terminal here";
    TMPFS: "mkdir small; unshare -rm mount -t tmpfs -o size=4m tmpfs small", "`unshare -rm` cannot mount a tmpfs here";
    // root reads everything, but without these capabilities.
    UNREADABLE_DIRECTORY: "mkdir -m 0 d; ! ls d || ! setpriv --bounding-set=-dac_override,-dac_read_search ls d",
        "root may read everything, and `setpriv` is not installed";
    VITEST: concat!("npm --version && '", runners!(), "/.bin/vitest' --version"), "npm is not installed, or vitest is not in target/runners";
    ZSH: "zsh --version", "zsh is not installed";
}

/// A program in Python that refuses itself Landlock, whose system calls have the same numbers on
/// all machines, and then becomes the command that its arguments name.
pub const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
load, jump, answer = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (jump, 0, 1, 444), (answer, 0, 0, 0x50000 + 38), (answer, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("HBBI", *step) for step in steps)
buffer = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(buffer)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[1], sys.argv[1:])
"#;

/// A shell command where the system allows no further user namespace.
pub fn without_namespaces(world: &World, command: &str) -> Answer {
    let script = format!("echo 0 > /proc/sys/user/max_user_namespaces\n{command}");
    let shell = ["--user", "--map-root-user", "--mount-proc", "--pid", "--fork", "sh", "-euc"];
    world.run(&world.repo, "unshare", shell.into_iter().chain([script.as_str()]))
}

/// Prints the path of git's completion for bash.
pub const FIND_GIT_BASH_COMPLETION: &str = "
    for file in /usr/share/bash-completion/completions/git \
        /usr/local/share/bash-completion/completions/git \
        /usr/local/etc/bash_completion.d/git-completion.bash \
        /opt/homebrew/etc/bash_completion.d/git-completion.bash; do
        test ! -e $file || { echo $file; exit 0; }
    done
    exit 1";

/// A test that is ignored unless each of its tools can be used.
pub fn trial(name: &'static str, tools: &'static [Tool], test: fn()) -> Trial {
    let name = name.trim_start_matches("tools::");
    Trial::ignorable_test(name, move || {
        // These tests name the world that they are about.
        crate::common::in_the_open_world();
        let world = World::empty("probe");
        let works = |tool: &Tool| world.run(&world.repo, "sh", ["-c", tool.probe]).code == 0;
        let missing: Vec<_> = tools.iter().filter(|tool| !works(tool)).map(|t| t.missing).collect();
        match missing[..] {
            [] => test(),
            [NO_DISK_WITH_REFLINKS] => return on_btrfs(&world, name),
            [missing, ..] => return Ok(Completion::ignored_with(missing)),
        }
        Ok(Completion::Completed)
    })
}

const NO_DISK_WITH_REFLINKS: &str =
    "files cannot share blocks on this disk, and no Btrfs can be made and mounted here";

/// Runs a test again on a Btrfs in a file, which goes with the last process that sees it mounted.
fn on_btrfs(world: &World, test: &str) -> Result<Completion, Failed> {
    let script = r#"
        { truncate -s 1G ../image; mkfs.btrfs -q ../image; mount -o loop ../image .; } || exit 77
        cd "$PWD"
        TMPDIR=$PWD exec "$0" --exact "$1"
    "#;
    let program = std::env::current_exe()?;
    let shell = ["--mount", "sh", "-euc", script];
    let mut again = Command::new("unshare");
    again.args(shell).arg(program).arg(test).current_dir(&world.repo);
    let answer = answer(&again.output()?);
    match answer.code {
        77 => Ok(Completion::ignored_with(NO_DISK_WITH_REFLINKS)),
        0 if answer.out().contains(" 1 passed; ") => Ok(Completion::Completed),
        _ => Err(format!("{}{}", answer.out(), answer.stderr).into()),
    }
}

/// Declares a module's trials: its test functions, each with the tools that it needs.
macro_rules! trials {
    ($($test:ident: [$($tool:expr),*];)*) => {
        pub fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$(crate::tool::trial(
                concat!(module_path!(), "::", stringify!($test)),
                const { &[$($tool),*] },
                $test,
            )),*]
        }
    };
}
pub(crate) use trials;
