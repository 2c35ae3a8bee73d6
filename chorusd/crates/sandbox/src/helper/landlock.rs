//! Landlock: limits writes to the writable directories, whatever the mounts show, and keeps abstract sockets and
//! signals within the sandbox.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, LandlockStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, Scope, path_beneath_rules,
};

/// The newest ABI whose access rights are all handled here.
const SUPPORTED_ABI: ABI = ABI::V7;

/// Restricts this thread and all processes it starts. Returns the kernel's ABI version, or `None` if it has no
/// Landlock.
///
/// # Errors
/// The kernel has Landlock but refuses the ruleset.
pub(super) fn restrict(writable: &[PathBuf]) -> Result<Option<u32>, RulesetError> {
    let devices = AccessFs::from_read(SUPPORTED_ABI) | AccessFs::WriteFile | AccessFs::IoctlDev;
    let shared = Path::new("/dev/shm");
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(SUPPORTED_ABI))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(SUPPORTED_ABI)))?
        .add_rules(path_beneath_rules(["/dev"], devices))?
        .add_rules(path_beneath_rules([shared], AccessFs::from_all(SUPPORTED_ABI)))?
        .add_rules(path_beneath_rules(writable, AccessFs::from_all(SUPPORTED_ABI)))?
        .restrict_self()?;
    Ok(match status.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(effective_abi as u32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    })
}
