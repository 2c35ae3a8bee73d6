//! The operations `capture.*`.

pub mod exclude;
pub mod forget;
pub mod off;
pub mod on;
pub mod pause;
pub mod resume;
pub mod status;
