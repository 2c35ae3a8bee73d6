//! The line to the daemon: standard input, which is a socket.

use rustix::io::{Errno, read, retry_on_intr, write};
use rustix::stdio::stdin;

use super::failed;
use crate::sandbox::wire::{Report, Spec};

/// A description is never this long.
const MOST: usize = 64 << 20;

/// Tells the daemon. One that has gone is noticed elsewhere.
pub fn say(report: &Report) {
    let Ok(mut bytes) = serde_json::to_vec(report) else { return };
    bytes.push(b'\n');
    let mut rest = &bytes[..];
    while let Ok(said @ 1..) = retry_on_intr(|| write(stdin(), rest)) {
        rest = &rest[said..];
    }
}

/// What is to be done. Nothing after it is taken.
///
/// # Errors
/// Anything else that is said.
pub fn spec() -> Result<Spec, String> {
    let mut length = [0; 4];
    fill(&mut length).map_err(failed("nobody says what is to run"))?;
    let length = u32::from_be_bytes(length) as usize;
    if length > MOST {
        return Err("what is to run is too long".into());
    }
    let mut bytes = vec![0; length];
    fill(&mut bytes).map_err(failed("nobody says what is to run"))?;
    serde_json::from_slice(&bytes).map_err(failed("what is to run cannot be read"))
}

fn fill(mut rest: &mut [u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        let count = retry_on_intr(|| read(stdin(), &mut *rest))?;
        if count == 0 {
            return Err(Errno::PIPE);
        }
        rest = &mut rest[count..];
    }
    Ok(())
}

/// The next word of the daemon; `None`: it is gone, or wants the end.
pub fn word() -> Option<u8> {
    let mut word = [0];
    match retry_on_intr(|| read(stdin(), &mut word)) {
        Ok(1) => Some(word[0]),
        _ => None,
    }
}
