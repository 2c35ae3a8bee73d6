//! stand-in until the import branch is merged
use crate::message::Stored;
#[derive(Debug)]
pub struct Extract {
    pub title: Option<String>,
    pub summary: Option<String>,
}
pub fn of_stored(_m: &[Stored]) -> Extract {
    Extract { title: None, summary: None }
}
