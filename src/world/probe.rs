//! Finds out whether a sealed world can be made on this machine.
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::error::describe;
use crate::process;
use crate::process::world_spec::{LAUNCHER_VERB, Mount, WorldMessage, WorldSpec};
use crate::world::user_directories::{make_room, overlays, work_of, written_by_commands};

/// The reason why no sealed world can be made on this machine; `None` if one can be made. `room` is
/// an empty directory on the file system that will have the upper layers of all overlays, including
/// the overlays over the user's directories.
///
/// No setting of the system tells this reliably, so a world is made as a test (GIT-FACTS,
/// "Worlds"). The result of the first call is kept for this process.
pub fn refusal(room: &Path) -> Option<String> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    tried_once(&REFUSAL, || try_to_enter(&spec_with_overlay(room)?, "echo > written"))
}

/// Tries to make a world without overlays, which guarded attempts need at least. Returns the reason
/// if that fails. Tries it once, as [`refusal`] does.
pub fn guard_refusal() -> Option<String> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    let spec = WorldSpec {
        dir: PathBuf::from("/"),
        mounts: vec![Mount::Devices],
        network: true,
        ..WorldSpec::default()
    };
    tried_once(&REFUSAL, || try_to_enter(&spec, ": > /dev/shm/written"))
}

/// The reason why no world can have overlays over these directories of the user; `None` if one can.
/// In such a world, all writes to the directories go to the upper layers of the overlays. `room` is
/// a directory on the file system that will have these layers; it need not be empty. As a test, a
/// command in such a world writes a file in `inside`, which must lie in one of `directories`.
///
/// The result of the first call is kept for this process.
pub fn refusal_of_layers(directories: &[PathBuf], inside: &Path, room: &Path) -> Option<String> {
    static REFUSAL: OnceLock<Option<String>> = OnceLock::new();
    tried_once(&REFUSAL, || {
        make_room(directories, room)?;
        let mut mounts = overlays(directories, room, &[]);
        mounts.push(Mount::Devices);
        let spec =
            WorldSpec { dir: inside.to_owned(), mounts, network: true, ..WorldSpec::default() };
        try_to_enter(&spec, "echo > git-frites-probe")
    })
}

/// The result of the first call of `attempt` in this process: the reason why it failed, or `None`.
fn tried_once(
    refusal: &OnceLock<Option<String>>,
    attempt: impl FnOnce() -> io::Result<Option<String>>,
) -> Option<String> {
    refusal.get_or_init(|| attempt().unwrap_or_else(|e| Some(describe(&e)))).clone()
}

fn spec_with_overlay(room: &Path) -> io::Result<WorldSpec> {
    let below = |name: &str| {
        let path = room.join(name);
        std::fs::create_dir(&path).map(|()| path)
    };
    let at = below("at")?;
    let overlay = Mount::Overlay {
        at: at.clone(),
        lower: vec![below("lower")?],
        upper: below("upper")?,
        work: below("work")?,
        is_optional: false,
    };
    let directories = written_by_commands();
    let layers = room.join("home");
    make_room(&directories, &layers)?;
    let mut mounts = overlays(&directories, &layers, &[]);
    mounts.extend([Mount::Devices, overlay]);
    let wrapping_point = work_of(&layers);
    Ok(WorldSpec { dir: at, mounts, wrapping_point, network: true, ..WorldSpec::default() })
}

/// Runs a shell script in a world. Returns the reason if that fails.
fn try_to_enter(spec: &WorldSpec, script: &str) -> io::Result<Option<String>> {
    let words = spec.words(LAUNCHER_VERB, "1")?;
    let output = Command::new(process::myself())
        .args(words)
        .arg("/bin/sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()?;
    Ok(match serde_json::from_slice(&output.stdout) {
        Ok(WorldMessage::Exited { code: Some(0), .. }) => None,
        Ok(WorldMessage::Refused { reason } | WorldMessage::NotStarted { reason, .. }) => {
            Some(reason)
        }
        Ok(WorldMessage::Exited { .. }) => Some("a command failed there".to_owned()),
        Err(_) => Some("the world's processes ended without an answer".to_owned()),
    })
}

/// The version of Landlock that the system has. Fails with the reason if Landlock cannot confine
/// commands here.
pub fn landlock() -> Result<u32, String> {
    #[cfg(target_os = "linux")]
    return super::landlock::version();
    #[cfg(not(target_os = "linux"))]
    Err("only Linux has it".to_owned())
}
