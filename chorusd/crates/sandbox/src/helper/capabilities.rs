//! Capabilities: the helper keeps those of its user namespace until the confinement is complete, then gives up all.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// More capabilities than any kernel has.
const MAX_CAPABILITIES: u32 = 64;

fn all_capabilities() -> impl Iterator<Item = CapabilitySet> {
    (0..MAX_CAPABILITIES).map(|number| CapabilitySet::from_bits_retain(1 << number))
}

/// Makes all permitted capabilities inheritable and ambient, so that the next program keeps them.
pub(super) fn make_inheritable() -> Result<()> {
    let had = rustix::thread::capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: had.permitted, ..had })?;
    for power in all_capabilities().filter(|power| had.permitted.contains(*power)) {
        configure_capability_in_ambient_set(power, true)?;
    }
    Ok(())
}

/// Drops all capabilities for good: no program started from here gains any, whatever its owner and file capabilities.
pub(super) fn drop_all() -> Result<()> {
    for power in all_capabilities() {
        match remove_capability_from_bounding_set(power) {
            // INVAL: the kernel does not know the capability. PERM: outside a namespace there is no right to drop it.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(e) => return Err(e),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    set_no_new_privs(true)
}
