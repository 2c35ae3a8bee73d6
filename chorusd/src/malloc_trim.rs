//! Memory that is free again goes back to the system: the allocator keeps it otherwise, in every thread's arena. So do
//! the pages in SQLite's own caches: the kernel's has them, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::store::Store;

/// What was freed in this time goes back in one go.
const TRIM_DELAY: Duration = Duration::from_millis(500);

static TRIM_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// Bytes from which a block is mapped by itself, so that freeing it returns it to the system.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD_BYTES: core::ffi::c_int = 1 << 20;

/// Has the allocator return large blocks as soon as they are freed. Otherwise it takes the first that is freed as a reason to keep up to
/// twice as much of such blocks in every arena: 32 MiB a thread after a frame of 16 MiB. For the start of the process.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
pub fn set_malloc_thresholds() {
    // SAFETY: takes no pointer and sets two numbers. One that is refused leaves the default.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, MMAP_THRESHOLD_BYTES);
    }
}

/// Does nothing: the allocator is not glibc's.
#[cfg(not(target_env = "gnu"))]
pub fn return_large_blocks() {}

/// Gives it back in a moment, once for all who ask until then.
pub fn schedule_trim(store: &Arc<Store>) {
    if TRIM_SCHEDULED.swap(true, Ordering::Relaxed) {
        return;
    }
    let store = store.clone();
    tokio::spawn(async move {
        tokio::time::sleep(TRIM_DELAY).await;
        TRIM_SCHEDULED.store(false, Ordering::Relaxed);
        store.release_page_caches().await;
        let _ = tokio::task::spawn_blocking(trim_heap).await;
    });
}

#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the allocator of glibc is told so by a call that no safe wrapper has")]
fn trim_heap() {
    // SAFETY: takes no pointer; it looks for whole pages among what is free, under the allocator's own locks.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim() {}
