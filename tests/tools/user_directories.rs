//! The directories of the user that commands write to beside their checkout: HOME, and those that
//! tools keep elsewhere, as their variables say.
use std::fs;

use tempfile::TempDir;

use crate::common::sealed::sealed;
use crate::common::{World, files_below};
use crate::tool::{NAMESPACES, trials};

trials! {
    judging_writes_to_directories_of_tools_outside_home_and_leaves_them_as_they_are: [NAMESPACES];
}

/// Makes a directory outside of HOME that is CARGO_HOME from now on, and holds a file.
fn cargo_home(world: &mut World) -> TempDir {
    let home = world.home();
    let outside =
        tempfile::Builder::new().prefix("frites-test-").tempdir_in(home.parent().unwrap());
    let outside = outside.unwrap();
    fs::write(outside.path().join("config.toml"), "of the user\n").unwrap();
    fs::create_dir(outside.path().join("registry")).unwrap();
    world.set_env("CARGO_HOME", outside.path());
    outside
}

fn judging_writes_to_directories_of_tools_outside_home_and_leaves_them_as_they_are() {
    let mut world = sealed();
    let outside = cargo_home(&mut world);
    let elsewhere = tempfile::tempdir_in(outside.path().parent().unwrap()).unwrap();
    world.set_env("GOPATH", format!("{}:/nowhere", elsewhere.path().display()));
    world.attempts(&["echo 1 > README", "echo 2 > README"]);
    // The setup of the base stands for a download, which the candidates find.
    world.git([
        "config",
        "frites.spawn.setup",
        "test -e $CARGO_HOME/registry/crate || echo once >> ~/shared/setup; \
        echo crate > $CARGO_HOME/registry/crate",
    ]);
    let test = "set -eu; grep -q user $CARGO_HOME/config.toml; grep -q crate $CARGO_HOME/registry/crate
        test ! -e $CARGO_HOME/registry/of-an-attempt; ! grep -q hello README || exit 0
        echo x > $CARGO_HOME/registry/of-an-attempt; rm $CARGO_HOME/config.toml; echo x > ${GOPATH%%:*}/made";
    world.frites(["judge", "--test", test]).expect(0);
    let left: Vec<_> =
        files_below(outside.path()).into_iter().filter(|path| path.is_file()).collect();
    assert_eq!(left, [outside.path().canonicalize().unwrap().join("config.toml")]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(world.home().join("shared/setup")).unwrap(), "once\n");
    world.assert_clean();
}
