//! Releases the pages of the program that are mapped into memory. A start and its housekeeping run code that an idle daemon
//! does not need, and around each page that is touched the kernel maps fifteen others.
//!
//! The kernel keeps the pages in its cache of files as long as memory is plentiful. What runs later is mapped again, a
//! microsecond for sixteen pages.

/// Releases the pages of code and constants of this program. Its variables, and the constants with addresses that were
/// corrected when it was loaded, stay.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only the dynamic linker knows where the program is, and no safe wrapper tells")]
pub(super) fn release() {
    // SAFETY: `release_first` has the type that is expected, and reads what it is given only while it runs.
    unsafe { libc::dl_iterate_phdr(Some(release_first), std::ptr::null_mut()) };
}

/// Does nothing: the daemon is not on Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn release() {}

/// Releases what cannot be written of the first object, which is the program, and ends the iteration.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "reads the list of segments that the dynamic linker passes")]
unsafe extern "C" fn release_first(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    _data: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: the dynamic linker passes a valid description, whose array of segments has this length.
    let (base, segments) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let page = rustix::param::page_size() as u64;
    for segment in segments.iter().filter(|part| part.p_type == libc::PT_LOAD && part.p_flags & libc::PF_W == 0) {
        // Whole pages only: the segment's neighbor may have variables in the rest of the last one.
        let start = (base + segment.p_vaddr).next_multiple_of(page);
        let end = (base + segment.p_vaddr + segment.p_memsz) / page * page;
        if start < end {
            // SAFETY: these pages are mapped from the program's file and were never written, so they are read from it again
            // when they are touched.
            unsafe { libc::madvise(start as *mut libc::c_void, (end - start) as usize, libc::MADV_DONTNEED) };
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_released_is_there_again_when_it_is_needed() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        release();
        assert!(text.is_ok_and(|text| text.contains("chorus-engine")));
    }
}
