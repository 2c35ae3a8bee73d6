//! What goes wrong, laid out by a test.

use std::time::Duration;

/// What a request gets instead of its answer, or before it.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A status with a body that is no JSON of Discord's.
    Status(u16),
    /// 429, with `Retry-After` and the same in the body.
    RateLimit { after: Duration, global: bool },
    /// What the guard before Discord says: 403, HTML.
    Html403,
    /// A refusal of Discord's: status, code and message.
    Refuse(u16, u64, &'static str),
    /// The connection breaks before anything was done.
    Reset,
    /// It is done, and the connection breaks before the answer.
    LoseResponse,
    /// It is done so long after.
    Delay(Duration),
    /// It waits until the test opens the gate, and is done then.
    Gate(&'static str),
}

/// A fault with the requests that it is for.
#[derive(Debug)]
pub struct FaultRule {
    method: String,
    path: Vec<String>,
    remaining: usize,
    fault: Fault,
}

impl FaultRule {
    /// `POST /channels/*/messages`: a star is any one part, or any method; two stars at the end are any rest.
    pub fn new(pattern: &str, times: usize, fault: Fault) -> Self {
        let (method, path) = pattern.split_once(' ').unwrap_or(("*", pattern));
        Self { method: method.to_owned(), path: path_segments(path), remaining: times, fault }
    }

    /// Whether it is for this request; it is used up once then.
    pub fn apply(&mut self, method: &str, path: &str) -> Option<Fault> {
        if self.remaining == 0 || !self.matches(method, path) {
            return None;
        }
        self.remaining -= 1;
        Some(self.fault.clone())
    }

    pub fn matches(&self, method: &str, path: &str) -> bool {
        let asked = path_segments(path);
        let (open, due) = match self.path.split_last() {
            Some((last, rest)) if last == "**" => (true, rest),
            _ => (false, &self.path[..]),
        };
        (self.method == "*" || self.method == method)
            && (asked.len() == due.len() || open && asked.len() >= due.len())
            && due.iter().zip(&asked).all(|(due, asked)| due == "*" || due == asked)
    }
}

fn path_segments(path: &str) -> Vec<String> {
    let path = path.split('?').next().unwrap_or_default();
    let path = path.strip_prefix("/api/v10").unwrap_or(path);
    path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
