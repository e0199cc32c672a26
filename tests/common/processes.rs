//! Counting the processes that a test started, by a mark in their environment: nothing can hide.
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::{World, make_executable, write};

/// A world whose processes carry a mark of their own.
pub fn marked() -> (World, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut world = World::new();
    let mark = format!("frites-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
    world.set_env("MARK", &mark);
    (world, mark)
}

/// Lets what this process starts have the default action of each signal, also where this process
/// was started with some of them ignored, as by `nohup`, or by a script with `&`: a handler goes
/// when another program is executed.
pub fn reset_ignored_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP] {
            if mask >> (signal - 1) & 1 == 1 {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// The processes of a world, which are those with its HOME. When a test fails, they are ended.
pub struct StartedProcesses {
    home: PathBuf,
}

impl StartedProcesses {
    /// Those with this HOME.
    pub fn of(home: &Path) -> StartedProcesses {
        StartedProcesses { home: home.to_owned() }
    }
}

impl Drop for StartedProcesses {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        // One may start another meanwhile.
        for _ in 0..100 {
            let living = with_variable(&format!("HOME={}", self.home.display()));
            if living.is_empty() {
                return;
            }
            for pid in living.into_iter().filter_map(|(pid, _)| Pid::from_raw(pid.cast_signed())) {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Puts a git before the others on PATH that kills itself with SIGKILL, after `script`, in each
/// call with this word among its arguments, while there is a file `kills` in HOME. git-frites must
/// be started by its own name: git looks for itself elsewhere.
pub fn kill_git(world: &mut World, word: &str, script: &str) {
    let git = world.run(&world.repo, "sh", ["-c", "command -v git"]).expect(0).out();
    let bin = world.home().join("bin");
    let text = format!(
        "#!/bin/sh\ncase \" $* \" in *\" {word} \"*) if test -e \"$HOME/kills\"; then\n{script}\n\
         kill -KILL $$; fi;; esac\nexec {} \"$@\"\n",
        git.trim()
    );
    write(&bin.join("git"), text);
    make_executable(&bin.join("git"));
    write(&world.home().join("kills"), "");
    let path = format!("{}:{}", bin.display(), world.env("PATH").to_str().unwrap());
    world.set_env("PATH", path);
}

/// The living processes with that mark: id and command line.
pub fn living(mark: &str) -> Vec<(u32, String)> {
    with_variable(&format!("MARK={mark}"))
}

/// The living processes with a variable of this value, which is given as `NAME=VALUE`.
fn with_variable(wanted: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let read = |file: &str| {
            String::from_utf8_lossy(&fs::read(entry.path().join(file)).unwrap_or_default())
                .into_owned()
        };
        if read("environ").split('\0').any(|v| v == wanted) && !read("stat").contains(") Z ") {
            found.push((pid, read("cmdline").replace('\0', " ")));
        }
    }
    found
}
