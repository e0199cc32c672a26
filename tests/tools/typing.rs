//! Confined commands have no terminal: what they type there would be the user's next command.
use std::fs;

use crate::common::sealed::confined;
use crate::common::{World, make_executable, poll, write};
use crate::terminal::Terminal;
use crate::tool::{LANDLOCK, NAMESPACES, PYTHON, TERMINAL, trials};
use crate::traces::shared_lines;

trials! {
    a_sealed_command_cannot_type_into_the_terminal: [NAMESPACES, PYTHON, TERMINAL];
    a_command_that_landlock_confines_cannot_type_into_the_terminal: [LANDLOCK, PYTHON, TERMINAL];
    a_guarded_attempt_cannot_type_into_the_terminal: [NAMESPACES, PYTHON, TERMINAL];
}

/// Notes how the terminal can be reached: as that of the process, and by its name. Only root can
/// type by the name alone.
const REACH: &str = r#"#!/bin/sh
if (: < /dev/tty) 2> /dev/null; then echo own >> ~/shared/reached; fi
python3 - 2> /dev/null << 'END'
import fcntl, os, termios
terminal = os.open(os.environ["TERMINAL"], os.O_RDWR | os.O_NOCTTY)
fcntl.ioctl(terminal, termios.TIOCSTI, b'x')
open(os.path.expanduser("~/shared/reached"), "a").write("typed\n")
END
echo tried >> ~/shared/tried
"#;

/// Asserts that the script [`REACH`] reaches the terminal only where nothing confines it. `line` is
/// a line of a shell on that terminal, which runs the script as `$HOME/reach`.
#[track_caller]
fn assert_out_of_reach(world: &World, line: &str) {
    let script = world.home().join("reach");
    write(&script, REACH);
    make_executable(&script);
    let whole = format!(
        "export TERMINAL=$(tty); ~/reach; mv ~/shared/reached ~/shared/outside; {line}; \
         echo $? > \"$DUMP\""
    );
    let terminal = Terminal::start(world, &whole);
    let mut code = String::new();
    poll(|| {
        code = fs::read_to_string(&terminal.file).unwrap_or_default();
        code.ends_with('\n')
    });
    assert_eq!(code, "0\n", "{}", terminal.screen());
    assert!(shared_lines(world, "outside").contains(&"own".to_owned()), "there is a terminal");
    assert!(shared_lines(world, "tried").len() > 1, "{}", terminal.screen());
    assert_eq!(shared_lines(world, "reached"), [""; 0]);
}

fn a_sealed_command_cannot_type_into_the_terminal() {
    let world = confined("sealed");
    world.attempts(&["echo changed > README"]);
    assert_out_of_reach(&world, "git frites judge --test ~/reach");
}

fn a_command_that_landlock_confines_cannot_type_into_the_terminal() {
    let world = confined("landlock");
    world.attempts(&["echo changed > README"]);
    assert_out_of_reach(&world, "git frites judge --test ~/reach");
}

fn a_guarded_attempt_cannot_type_into_the_terminal() {
    let mut world = confined("off");
    world.set_env("FRITES_SPAWN_GUARD", "required");
    // The attempt has a HOME of its own, and tells by this directory that it ran.
    world.set_env("FRITES_SPAWN_WRITE", world.home().join("shared"));
    assert_out_of_reach(&world, "git frites spawn -n 1 -- sh -c '~/reach; echo 1 > README'");
}
