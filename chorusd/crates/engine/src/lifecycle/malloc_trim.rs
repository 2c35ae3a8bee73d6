//! Returns free memory to the system. Otherwise glibc's allocator keeps it in the arenas of the threads, and SQLite
//! keeps pages in its own caches although the kernel caches them too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chorus_store::Store;

/// Frees within this time are returned together.
const TRIM_DELAY: Duration = Duration::from_millis(500);

static TRIM_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// Blocks of at least this many bytes are mapped separately, so that freeing one returns it to the system.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD_BYTES: core::ffi::c_int = 1 << 20;

/// Makes the allocator return large blocks as soon as they are freed. By default, freeing the first one makes it keep
/// up to twice as much of such blocks in every arena: 32 MiB per thread after a frame of 16 MiB. Call it when the
/// process starts.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
pub fn set_malloc_thresholds() {
    // SAFETY: passes no pointers and sets two numbers. If a call is refused, the default stays.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, MMAP_THRESHOLD_BYTES);
    }
}

/// Does nothing: the allocator is not glibc's.
#[cfg(not(target_env = "gnu"))]
pub fn set_malloc_thresholds() {}

/// Returns free memory to the system in a moment, once for all calls until then.
pub fn schedule_trim(store: &Arc<Store>) {
    if TRIM_SCHEDULED.swap(true, Ordering::Relaxed) {
        return;
    }
    let store = store.clone();
    chorus_runtime::spawn(async move {
        tokio::time::sleep(TRIM_DELAY).await;
        TRIM_SCHEDULED.store(false, Ordering::Relaxed);
        store.release_page_caches().await;
        let _ = chorus_runtime::spawn_blocking(trim_heap).await;
    });
}

/// Returns free memory to the system now.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
pub(crate) fn trim_heap() {
    // SAFETY: passes no pointers. It releases whole free pages, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: the allocator is not glibc's.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn trim_heap() {}
