//! Counting the processes that a test started, by a mark in their environment: nothing can hide.
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use super::World;

/// A world whose processes carry a mark of their own.
pub fn marked() -> (World, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut world = World::new();
    let mark = format!("frites-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
    world.set_env("MARK", &mark);
    (world, mark)
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
