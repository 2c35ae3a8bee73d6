//! New ids.

use std::time::SystemTime;

use uuid::Uuid;

/// Creates an id that sorts by the wall clock. On a machine whose clock is before 1970 the ids have the time 0.
#[must_use]
pub fn new_id() -> Uuid {
    new_id_at(SystemTime::now())
}

#[expect(clippy::disallowed_methods, reason = "this is what stands before it")]
fn new_id_at(now: SystemTime) -> Uuid {
    match now.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(_) => Uuid::now_v7(),
        Err(_) => Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_clock_before_1970_gives_ids_all_the_same() {
        let early = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        let (one, two) = (new_id_at(early), new_id_at(early));
        assert_ne!(one, two);
        assert_eq!(one.get_version_num(), 7);
        assert!(one < new_id());
    }
}
