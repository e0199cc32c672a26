//! The file system that a file lies on.
use std::os::fd::AsFd;
use std::path::Path;

/// The numbers of file systems on disks of this machine whose change times are those of the kernel's
/// own clock: ext2 to ext4, XFS, Btrfs, F2FS.
const LOCAL: [u64; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// The number of a file system in memory.
const TMPFS: u64 = 0x0102_1994;

/// True if a file lies in memory: to wait for the disk is then to wait for nothing.
pub fn is_in_memory(path: &Path) -> bool {
    cfg!(target_os = "linux") && rustix::fs::statfs(path).is_ok_and(|found| number(&found) == TMPFS)
}

/// True if the kernel itself gives the files beside this one their change times: no other machine, and
/// no program.
pub fn has_times_of_kernel(file: impl AsFd) -> bool {
    let number = rustix::fs::fstatfs(file).map(|found| number(&found));
    cfg!(target_os = "linux")
        && number.is_ok_and(|number| number == TMPFS || LOCAL.contains(&number))
}

/// The number of a file system, of 32 bits on every machine.
fn number(found: &rustix::fs::StatFs) -> u64 {
    u64::from(found.f_type as u32)
}
