//! Chooses a block of ports for each candidate, so that several candidates can run servers at the
//! same time.
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

/// The number of ports in a block.
pub const BLOCK: u16 = 10;

/// The first port of the first block. All blocks lie above the ports on which programs commonly
/// listen. They lie below 32768, because Linux uses the ports from there on for outgoing
/// connections.
const FIRST: u16 = 20_000;
const BLOCKS: u16 = (32_760 - FIRST) / BLOCK;

/// The first ports of up to `count` blocks. The result has no block in `taken`, and no block in
/// which a process listens now. `key` decides where the search begins. So two repositories seldom
/// choose the same block.
pub fn free_blocks(count: usize, taken: &BTreeSet<u16>, key: u64) -> Vec<u16> {
    let start = u16::try_from(key % u64::from(BLOCKS)).expect("it is below a u16");
    let blocks = (0..BLOCKS).map(|at| FIRST + (start + at) % BLOCKS * BLOCK);
    blocks.filter(|first| !taken.contains(first) && is_free(*first)).take(count).collect()
}

fn is_free(first: u16) -> bool {
    (first..first + BLOCK).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_wrap_around() {
        let taken = BTreeSet::from([FIRST]);
        let found = free_blocks(5, &taken, u64::from(BLOCKS) - 2);
        assert_eq!(found.len(), 5);
        let distinct: BTreeSet<u16> = found.iter().copied().collect();
        assert_eq!(distinct.len(), 5);
        assert!(
            found
                .iter()
                .all(|p| p % BLOCK == 0 && (FIRST..32_760).contains(p) && !taken.contains(p)),
            "{found:?}"
        );
    }

    #[test]
    fn a_block_in_which_somebody_listens_is_left_out() {
        let first = free_blocks(1, &BTreeSet::new(), 7)[0];
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 3)).expect("it was free");
        assert!(!free_blocks(3, &BTreeSet::new(), 7).contains(&first));
    }
}
