//! Runs that are opened at a remote, and judged by nodes that have nothing else.
use std::fs;
use std::path::{Path, PathBuf};

use super::{Answer, World};

/// A world with a bare repository at `remote.git`, named `origin`.
pub fn with_remote(world: &World) -> String {
    let url = world.home().join("remote.git");
    world.git(["clone", "-q", "--bare", ".", url.to_str().unwrap()]);
    world.git(["remote", "add", "origin", url.to_str().unwrap()]);
    url.into_os_string().into_string().unwrap()
}

/// A world whose run 1 changes 9, 3 and 5 lines, judged by a configured test; and the remote's URL.
pub fn three_sizes(test: &str) -> (World, String) {
    let world = World::new();
    world.write(".frites.toml", format!("[oracle]\ntest = '''{test}'''\n"));
    world.commit("configured");
    let url = with_remote(&world);
    world.attempts(&["seq 9 > new", "seq 3 > new", "seq 5 > new"]);
    (world, url)
}

/// A directory that is in no repository: a node that has nothing.
pub fn node(world: &World) -> PathBuf {
    let dir = world.home().join("node");
    fs::create_dir_all(&dir).unwrap();
    dir
}

pub fn open(world: &World) -> Answer {
    world.frites(["shard", "open", "--remote", "origin", "1"]).expect(0)
}

/// `shard … --remote URL` with these words, on a node that has nothing.
pub fn on_node(world: &World, url: &str, words: &[&str]) -> Answer {
    let words = ["shard"].into_iter().chain(words.iter().copied()).chain(["--remote", url]);
    world.frites_in(&node(world), words)
}

pub fn replay(world: &World, words: &[&str]) -> Answer {
    let all = ["shard", "collect", "--remote", "origin", "1"];
    world.frites(all.into_iter().chain(words.iter().copied()))
}

/// The refs of the remote below `refs/frites/1/`, by their last words.
pub fn refs(world: &World, url: &str) -> String {
    let format = "--format=%(refname:lstrip=3)";
    world.git_in(Path::new(url), ["for-each-ref", format, "refs/frites/1/"]).replace('\n', " ")
}
