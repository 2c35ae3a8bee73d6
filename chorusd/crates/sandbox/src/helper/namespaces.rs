//! The outer stage of the helper: creates namespaces, but stays outside the new PID namespace.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

use super::{capabilities, with_context};
use crate::protocol::{CONFINE_STAGE, HELPER_FLAG};

/// Creates the namespaces, runs the inner stage in them, and waits for its end.
pub(super) fn run(network: bool) -> Result<(), String> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    let mut flags = UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    if !network {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags).map_err(with_context("cannot create namespaces"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(with_context(format!("cannot write {file}")))
    };
    map("setgroups", "deny".into())?;
    map("uid_map", format!("{user} {user} 1"))?;
    map("gid_map", format!("{group} {group} 1"))?;
    capabilities::make_inheritable().map_err(with_context("cannot keep the capabilities of a namespace"))?;
    let mut inner = Command::new("/proc/self/exe");
    inner.args([HELPER_FLAG, CONFINE_STAGE]).stdin(Stdio::inherit());
    let ended = inner.spawn().and_then(|mut child| child.wait()).map_err(with_context("cannot run in a namespace"))?;
    if ended.success() { Ok(()) } else { Err(format!("the program inside exited with {ended}")) }
}

#[expect(deprecated, reason = "only its flag for descriptors is unsafe, which is not given here")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Brings up the loopback interface of a network namespace.
pub(super) fn bring_up_loopback() -> rustix::io::Result<()> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
    /// `nlmsghdr` of an acknowledged `RTM_NEWLINK`, and `ifinfomsg` of the first interface with `IFF_UP`.
    const HEADER: [u16; 4] = [16, 5, 1, 0];
    const BODY: [u32; 2] = [1, 1];
    let mut message = 32_u32.to_ne_bytes().to_vec();
    message.extend(HEADER.iter().flat_map(|word| word.to_ne_bytes()));
    message.extend([0; 4]);
    // Family, padding and type; then the index, the flags, and the mask of changed flags.
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(BODY.iter().flat_map(|word| word.to_ne_bytes()));
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // NETLINK_ROUTE.
        None,
    )?;
    let to = netlink::SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &to)?;
    let mut answer = [0_u8; 256];
    rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    Ok(())
}
