//! The open descriptors of a world's processes.
use std::ffi::OsString;
use std::fs::File;
use std::io;

/// Opens the descriptor with this number again: a number alone can be no safe owner of it.
pub(super) fn open_status(number: &OsString) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", number.to_string_lossy());
    File::options().write(true).open(path)
}

/// Closes every descriptor above the standard ones but `kept`. An inherited directory would be a
/// way out: paths below it lead to the old, writable mounts. And a command that had the one on which
/// its end is told could forge it.
pub(super) fn close_inherited(kept: i32) -> io::Result<()> {
    let mut open: Vec<i32> = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        open.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for number in open.into_iter().filter(|number| *number > 2 && *number != kept) {
        // The descriptor of the listing itself is closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}
