//! Files of `/proc`.
use std::fs::File;
use std::io::{self, Read};

/// The length that the files of a process rarely exceed.
const USUAL: usize = 4 << 10;

/// Reads a file of `/proc`, such as `self/status`, with four calls. Such a file has no length: the
/// standard library would ask for it, and begin with 32 bytes.
pub(super) fn read(name: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL);
    File::open(format!("/proc/{name}"))?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_longer_than_usual_is_read_whole() {
        let maps = read("self/maps").expect("it is ours");
        assert!(maps.len() > USUAL, "{}", maps.len());
        let last = String::from_utf8_lossy(&maps);
        assert!(last.contains("[stack]") && last.ends_with('\n'), "{last}");
    }
}
