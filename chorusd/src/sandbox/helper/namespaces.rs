//! Namespaces of our own: the outer stage, which stays outside of the one for processes.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;

use super::{capabilities, with_context};
use crate::sandbox::protocol::{CONFINE_STAGE, HELPER_FLAG};

/// Makes them, runs the next stage in them, and waits for its end.
///
/// # Errors
/// What this machine does not let us do.
pub fn run(network: bool) -> Result<(), String> {
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
    unshare(flags).map_err(with_context("no namespaces can be made"))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(with_context(format!("cannot write {file}")))
    };
    map("setgroups", "deny".into())?;
    map("uid_map", format!("{user} {user} 1"))?;
    map("gid_map", format!("{group} {group} 1"))?;
    capabilities::make_inheritable().map_err(with_context("cannot keep the powers of a namespace"))?;
    let mut inner = Command::new("/proc/self/exe");
    inner.args([HELPER_FLAG, CONFINE_STAGE]).stdin(Stdio::inherit());
    let ended = inner.spawn().and_then(|mut child| child.wait()).map_err(with_context("cannot run in a namespace"))?;
    if ended.success() { Ok(()) } else { Err(format!("the program inside ended with {ended}")) }
}

#[expect(deprecated, reason = "only its flag for descriptors is unsafe, which is not given here")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Brings up the interface of a network namespace by which its processes talk to each other.
///
/// # Errors
/// Those of the kernel.
pub fn bring_up_loopback() -> rustix::io::Result<()> {
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
    /// `nlmsghdr` of an `RTM_NEWLINK` that is acknowledged, and `ifinfomsg` of the first interface with `IFF_UP`.
    const HEADER: [u16; 4] = [16, 5, 1, 0];
    const BODY: [u32; 2] = [1, 1];
    let mut message = 32_u32.to_ne_bytes().to_vec();
    message.extend(HEADER.iter().flat_map(|word| word.to_ne_bytes()));
    message.extend([0; 4]);
    // Family, padding and type; then index, flags, and which flags are meant.
    message.extend([0; 4]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(BODY.iter().flat_map(|word| word.to_ne_bytes()));
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // 0: routes, and what they lead by.
        None,
    )?;
    let to = netlink::SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &to)?;
    let mut answer = [0_u8; 256];
    rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    Ok(())
}
