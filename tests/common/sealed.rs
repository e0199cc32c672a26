//! Repositories whose oracle commands run in sealed worlds, or are confined in another way.
use std::fs;

use super::World;

/// A world in which oracle commands are sealed; see [`confined`].
pub fn sealed() -> World {
    confined("sealed")
}

/// A world in which oracle commands are confined in this way (`sandbox.mode`), and can write to the
/// directory `shared` in the home directory.
pub fn confined(mode: &str) -> World {
    let mut world = World::new();
    fs::create_dir(world.home().join("shared")).unwrap();
    world.set_env("FRITES_SANDBOX_MODE", mode);
    world.set_env("FRITES_ORACLE_WARM", "base");
    world.set_env("FRITES_SANDBOX_WRITE", world.home().join("shared"));
    world
}

/// A project in sealed worlds; see [`stale_project_in`].
pub fn stale_project() -> World {
    stale_project_in(sealed())
}

/// A project in the world of a test, whose build leaves an object for each source, and links all
/// objects that there are: a deleted source stays linked where its object is left over.
pub fn stale_project_in(world: World) -> World {
    world.write(
        "Makefile",
        "objects = $(patsubst %.src,%.obj,$(wildcard *.src))\n\
         app: $(objects)\n\tcat *.obj > app\n\
         %.obj: %.src\n\techo $@ >> ~/shared/compiled; cp $< $@\n\
         test: app\n\tgrep -q needed app\n",
    );
    world.write(".gitignore", "*.obj\napp\n");
    world.write("a.src", "first\n");
    world.write("b.src", "needed\n");
    world.commit("a project with outputs");
    world
}
