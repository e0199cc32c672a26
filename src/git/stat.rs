//! Converts the stat data of files to the form in which an index holds them.
use gix::index::entry::Stat as EntryStat;
use gix::index::entry::stat::Time;
use rustix::fs::Stat;

/// The stat data of a file as an index holds it: the lower 32 bits of each number.
pub(super) fn entry_stat(stat: &Stat) -> EntryStat {
    let size = match stat.st_size as u32 {
        // The size is a multiple of 4 GiB. Like git, this sets the highest bit, so that the file does not
        // look empty.
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
