//! stand-in until the summary branch is merged
use chorus_proto::Message;
#[derive(Debug, Default)]
pub struct Digest;
impl Digest {
    pub fn new() -> Self {
        Self
    }
    pub fn push(&mut self, _m: &Message) {}
    pub fn indices(total: usize) -> impl Iterator<Item = usize> {
        0..total.min(300)
    }
}
#[derive(Debug)]
pub struct Extract {
    pub title: Option<String>,
    pub summary: Option<String>,
}
pub fn extract(_m: &Digest) -> Extract {
    Extract { title: None, summary: None }
}
