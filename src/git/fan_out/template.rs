//! The index of a new worktree: everything but the stat data is the same in all of them.
use std::fs;

use gix::index::write::{Extensions, Options};

use crate::error::{Error, IoContext, Result};
use crate::fs::parallel;
use crate::git::fan_out::place::Place;
use crate::git::fan_out::writer::Written;
use crate::git::index::cached_tree;
use crate::git::index_bytes::{HEADER, entry_length, put_stat};
use crate::git::repo::from_oid;
use crate::model::oid::Oid;

/// An index file without stat data and checksum, with its extension of cached trees: git and a
/// capture then need not write the trees of directories in which nothing changed.
pub struct IndexTemplate {
    bytes: Vec<u8>,
    /// The place of each entry in the file.
    entries: Vec<usize>,
    hash: gix::hash::Kind,
}

impl IndexTemplate {
    /// The template for a tree, of which `index` lists the files.
    pub fn new(
        gix: &gix::ThreadSafeRepository,
        hash: gix::hash::Kind,
        index: &gix::index::State,
        tree: &Oid,
    ) -> Result<IndexTemplate> {
        let failed =
            |e: &dyn std::fmt::Display| Error::internal(format!("the index cannot be made: {e}"));
        let mut bytes = Vec::new();
        let only_entries = Options { extensions: Extensions::None, skip_hash: false };
        let id = from_oid(tree)?;
        let (version, cache) = parallel::both(
            || index.write_to(&mut bytes, only_entries),
            || cached_tree(&gix.to_thread_local(), id, b""),
        );
        let version = version.map_err(|e| failed(&e))?;
        if version != gix::index::Version::V2 || hash != gix::hash::Kind::Sha1 {
            return Err(failed(&"it is not of version 2 with SHA-1"));
        }
        let mut at = HEADER;
        let place = |entry: &gix::index::Entry| {
            let place = at;
            at += entry_length(entry.path(index).len());
            place
        };
        let entries = index.entries().iter().map(place).collect();
        if at != bytes.len() {
            return Err(failed(&"its entries have other lengths than expected"));
        }
        cache.map_err(|e| failed(&e))?.write_to(&mut bytes).map_err(|e| failed(&e))?;
        Ok(IndexTemplate { bytes, entries, hash })
    }

    /// Writes the index of each place, with the stat data of the files that were written.
    pub fn write_indexes(&self, places: &[Place<'_>], written: &Written) -> Result<()> {
        let all: Vec<usize> = (0..places.len()).collect();
        parallel::map(&all, |at| {
            // A hash stands at the end.
            let mut bytes = Vec::with_capacity(self.bytes.len() + self.hash.len_in_bytes());
            bytes.extend_from_slice(&self.bytes);
            let stats = written.stats.chunks_exact(places.len());
            for (entry, stats) in written.entries.iter().zip(stats) {
                let place = self.entries[*entry];
                put_stat(&stats[*at], &mut bytes[place..]);
            }
            let mut hasher = gix::hash::hasher(self.hash);
            hasher.update(&bytes);
            let checksum = hasher.try_finalize();
            let checksum = checksum.map_err(|e| Error::internal(format!("a checksum: {e}")))?;
            bytes.extend_from_slice(checksum.as_slice());
            let file = &places[*at].index;
            fs::write(file, bytes).context(|| format!("could not write '{}'", file.display()))
        })?;
        Ok(())
    }
}
