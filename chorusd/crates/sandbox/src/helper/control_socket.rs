//! The helper's end of the control socket, which is its standard input.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, IoSliceMut, read, retry_on_intr, write};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::stdio::stdin;

use super::with_context;
use crate::protocol::{HelperReport, LaunchSpec, MAX_DESCRIPTORS};

/// Limit on the length of the launch spec, in bytes.
const MAX_SPEC_LEN: usize = 64 << 20;

/// Sends a report to the daemon. Write errors are ignored: [`receive_request`] notices when the daemon is gone.
pub(super) fn send_report(report: &HelperReport) {
    let Ok(mut bytes) = serde_json::to_vec(report) else { return };
    bytes.push(b'\n');
    let mut rest = &bytes[..];
    while let Ok(said @ 1..) = retry_on_intr(|| write(stdin(), rest)) {
        rest = &rest[said..];
    }
}

/// Receives the launch spec, the descriptors of the control groups to join, and the command's standard input if it has one.
/// Reads nothing beyond them.
pub(super) fn receive_spec() -> Result<(LaunchSpec, Vec<OwnedFd>, Option<OwnedFd>), String> {
    let mut length = [0; 4];
    let mut descriptors = read_first(&mut length).map_err(with_context("no command received"))?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_SPEC_LEN {
        return Err("the command is too long".into());
    }
    let mut bytes = vec![0; length];
    read_full(&mut bytes).map_err(with_context("no command received"))?;
    let spec: LaunchSpec = serde_json::from_slice(&bytes).map_err(with_context("cannot read the command"))?;
    let input = if spec.has_input { Some(descriptors.pop().ok_or("no standard input received")?) } else { None };
    Ok((spec, descriptors, input))
}

/// Reads the first bytes and the descriptors that come with them.
fn read_first(bytes: &mut [u8]) -> Result<Vec<OwnedFd>, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let took = retry_on_intr(|| recvmsg(stdin(), &mut [IoSliceMut::new(bytes)], &mut beside, flags))?;
    let mut found = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            found.extend(descriptors);
        }
    }
    match took.bytes {
        0 => Err(Errno::PIPE),
        count => read_full(&mut bytes[count..]).map(|()| found),
    }
}

fn read_full(mut rest: &mut [u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        let count = retry_on_intr(|| read(stdin(), &mut *rest))?;
        if count == 0 {
            return Err(Errno::PIPE);
        }
        rest = &mut rest[count..];
    }
    Ok(())
}

/// Reads the daemon's next request; `None` if the daemon is gone or has closed the socket.
pub(super) fn receive_request() -> Option<u8> {
    let mut word = [0];
    match retry_on_intr(|| read(stdin(), &mut word)) {
        Ok(1) => Some(word[0]),
        _ => None,
    }
}
