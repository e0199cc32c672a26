//! The layers of a base that start from those of its ancestor: the outputs of parts that did not
//! change need not be made again.
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
use crate::fs::tree;
use crate::fs::walk::visit;
use crate::git::layers::base::{BaseLayer, clean_outputs};
use crate::git::layers::{copied, difference};
use crate::git::repo::Repo;
use crate::git::seed::find::Seeds;
use crate::model::oid::Oid;

/// The longest that the files of a base wait to be younger than outputs which were made just now.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The pause between two looks at the clock.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes layers from those of an ancestor, whose tree is `from`: its files, with those of the tree
/// `to` where they differ, and its outputs. False if the difference cannot stand above the
/// ancestor's files; then nothing is made.
///
/// A file that differs is younger than all outputs, so that build tools make anew what depends on
/// it, and older than the files of every tree that is judged later, as those of
/// [`BaseLayer::check_out`] are. What the ancestor's commands left in the home directory stays
/// there: trees are judged over outputs only as a claim, but over downloads always.
pub fn start(
    layer: &BaseLayer,
    repo: &Repo,
    ancestor: &BaseLayer,
    [from, to]: [&Oid; 2],
    seeds: &Seeds,
) -> Result<bool> {
    let failed = || format!("could not make '{}'", layer.dir().display());
    let inherited = layer.ancestors_outputs();
    let sources = layer.sources();
    let changes = layer.dir().join("difference");
    fs::create_dir_all(&changes).context(failed)?;
    let mut usable =
        difference::write(repo, ancestor, [from, to], seeds, &changes, &layer.index())?;
    if usable {
        fs::create_dir(&inherited).and_then(|()| fs::create_dir(&sources)).context(failed)?;
        // The difference hides outputs in directories that are gone.
        copied::copy(&[vec![changes.clone()], ancestor.all_outputs()].concat(), &inherited)?;
        clean_outputs(&inherited, &layer.index())?;
        usable = make_younger(&changes, tree::last_written(&inherited)).context(failed)?;
    }
    if !usable {
        return tree::delete_tree(layer.dir()).context(failed).map(|()| false);
    }
    copied::copy(&[changes.clone(), ancestor.sources()], &sources)?;
    tree::delete_tree(&changes).context(failed)?;
    layer.take_cold_seconds(ancestor);
    Ok(true)
}

/// Gives all files below a directory the last second that is over, once that second came after
/// `oldest`. False if the clock does not get there soon.
fn make_younger(directory: &Path, oldest: Option<SystemTime>) -> io::Result<bool> {
    let second = |time: SystemTime| {
        time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
    };
    let first = oldest.map(second).unwrap_or_default() + 2;
    let start = SystemTime::now();
    let mut now = start;
    while second(now) < first {
        if now > start + LONGEST_WAIT || second(start) + LONGEST_WAIT.as_secs() < first {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
        now = SystemTime::now();
    }
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(second(now) - 1);
    let mut files = Vec::new();
    visit(directory, &mut |path, meta| {
        files.extend(meta.is_file().then(|| path.to_vec()));
    })?;
    for path in files {
        fs::File::open(directory.join(OsStr::from_bytes(&path)))?.set_modified(last)?;
    }
    Ok(true)
}
