//! Which Landlock the kernel has.

/// The version of its interface; `None` where it is not there, or switched off.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the kernel tells it by a system call that no safe wrapper has")]
pub fn abi() -> Option<libc::c_long> {
    /// `LANDLOCK_CREATE_RULESET_VERSION`: asks for the version and makes nothing.
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel takes no pointer and a length of nothing, and returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    Some(version).filter(|version| *version > 0)
}

/// Landlock is Linux's.
#[cfg(not(target_os = "linux"))]
pub fn abi() -> Option<i64> {
    None
}
