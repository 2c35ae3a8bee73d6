//! The locks of the standard library without poisoning: a panic while a lock is held ends its task or thread and is
//! reported there; whoever locks next goes on with the value as it is.

#![expect(clippy::disallowed_types, reason = "these are the locks that hide it")]

pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use std::sync::PoisonError;

/// A mutex that a panic does not poison.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// Waits for the lock. Blocks.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader-writer lock that a panic does not poison.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    /// Waits until nobody writes. Blocks.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody reads or writes. Blocks.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_the_lock_usable() {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
        let panicked = std::thread::scope(|threads| {
            let panicking = threads.spawn(|| {
                let (mut held, mut written) = (mutex.lock(), lock.write());
                (*held, *written) = (2, 2);
                panic!("while both locks are held");
            });
            panicking.join().is_err()
        });
        assert!(panicked);
        assert_eq!((*mutex.lock(), *lock.read()), (2, 2));
        assert_eq!(mutex.into_inner(), 2);
    }
}
