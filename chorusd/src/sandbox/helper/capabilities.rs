//! Capabilities: those that a user namespace gives are kept until everything is in place, then none is.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// More than any kernel knows.
const MAX_CAPABILITIES: u32 = 64;

fn all_capabilities() -> impl Iterator<Item = CapabilitySet> {
    (0..MAX_CAPABILITIES).map(|number| CapabilitySet::from_bits_retain(1 << number))
}

/// Whatever the program is replaced by has what this one has.
///
/// # Errors
/// Those of the kernel.
pub fn make_inheritable() -> Result<()> {
    let had = rustix::thread::capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: had.permitted, ..had })?;
    for power in all_capabilities().filter(|power| had.permitted.contains(*power)) {
        configure_capability_in_ambient_set(power, true)?;
    }
    Ok(())
}

/// No program started from here has any, whoever it belongs to and whatever is set on its file.
///
/// # Errors
/// Those of the kernel.
pub fn drop_all() -> Result<()> {
    for power in all_capabilities() {
        match remove_capability_from_bounding_set(power) {
            // The kernel does not know it; or there is nothing to give up with, as outside of a namespace.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(e) => return Err(e),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)
}
