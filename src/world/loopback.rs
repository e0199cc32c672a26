//! Brings up the loopback device of a new network namespace, which is down at first.
use std::io;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The index of the loopback device, which is the first device in every network namespace.
const LOOPBACK: i32 = 1;

/// `RTM_NEWLINK` (rtnetlink(7)).
const NEW_LINK: u16 = 16;

/// `NLM_F_REQUEST | NLM_F_ACK` (netlink(7)).
const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;

/// `IFF_UP` (netdevice(7)).
const UP: u32 = 1;

/// The length of the request in bytes: `struct nlmsghdr` and `struct ifinfomsg`.
const LENGTH: u32 = 16 + 16;

/// Brings the loopback device up. Needs `CAP_NET_ADMIN` in the user namespace that owns the network
/// namespace.
pub(super) fn bring_up() -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE is protocol 0.
        None,
    )?;
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // `struct nlmsgerr` follows the header; its first field is 0 or a negative error number.
    let field = if length >= 20 { answer.get(16..20) } else { None };
    let error = field.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match error {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(-error)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The request that sets the flag `IFF_UP`: `struct nlmsghdr` and `struct ifinfomsg`.
fn request() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(LENGTH.to_ne_bytes());
    bytes.extend(NEW_LINK.to_ne_bytes());
    bytes.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence number and port.
    bytes.extend([0; 8]);
    // Family, padding and device type.
    bytes.extend([0; 4]);
    bytes.extend(LOOPBACK.to_ne_bytes());
    // The flags, and the mask of the flags to change.
    bytes.extend(UP.to_ne_bytes());
    bytes.extend(UP.to_ne_bytes());
    bytes
}
