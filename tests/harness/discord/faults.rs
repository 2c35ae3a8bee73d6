//! Faults that tests inject into REST requests.

use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A status with a body that is no JSON.
    Status(u16),
    /// 429, with `Retry-After` and the same in the body.
    RateLimit { after: Duration, global: bool },
    /// The response of a proxy in front of Discord: 403, HTML.
    Html403,
    /// An error of Discord: status, code and message.
    Refuse(u16, u64, &'static str),
    /// The connection is reset before the request is executed.
    Reset,
    /// The request is executed, and the connection is reset before the response.
    LoseResponse,
    /// The request is executed after this time.
    Delay(Duration),
    /// The request waits until the test opens the gate, and is executed then.
    Gate(&'static str),
}

/// A fault, and the requests that it applies to.
#[derive(Debug)]
pub struct FaultRule {
    method: String,
    path: Vec<String>,
    remaining: usize,
    fault: Fault,
}

impl FaultRule {
    /// `POST /channels/*/messages`: a star stands for one segment, or for any method; two stars at the end stand for
    /// any rest.
    pub fn new(pattern: &str, times: usize, fault: Fault) -> Self {
        let (method, path) = pattern.split_once(' ').unwrap_or(("*", pattern));
        Self { method: method.to_owned(), path: path_segments(path), remaining: times, fault }
    }

    /// If the rule matches the request, uses it once and returns the fault.
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
