//! Counting the processes that a test started, by a mark in their environment: nothing can hide.
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{World, make_executable, write};

/// A world whose processes carry a mark of their own.
pub fn marked() -> (World, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut world = World::new();
    let mark = format!("frites-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
    world.set_env("MARK", &mark);
    (world, mark)
}

/// Puts a git before the others on PATH that kills itself with SIGKILL, after `script`, in each call with
/// this word among its arguments, while there is a file `kills` in HOME. git-frites must be started by its
/// own name: git looks for itself elsewhere.
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
    let wanted = format!("MARK={mark}");
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
