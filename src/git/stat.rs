//! The stat data of files in the form of an index.
use gix::index::entry::Stat as EntryStat;
use gix::index::entry::stat::Time;
use rustix::fs::Stat;

/// The stat data of a file as an index holds it: the lower 32 bits of each number.
pub(super) fn entry_stat(stat: &Stat) -> EntryStat {
    let size = match stat.st_size as u32 {
        // A long file must not look like an empty one: git sets the highest bit.
        0 if stat.st_size != 0 => 1 << 31,
        size => size,
    };
    EntryStat {
        mtime: Time { secs: stat.st_mtime as u32, nsecs: stat.st_mtime_nsec as u32 },
        ctime: Time { secs: stat.st_ctime as u32, nsecs: stat.st_ctime_nsec as u32 },
        dev: stat.st_dev as u32,
        ino: stat.st_ino as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size,
    }
}
