//! The link that is printed, which opens the pages once, and the cookies of the browsers that used one.

use std::io;
use std::path::PathBuf;

use chorus_base::hex;
use chorus_base::sync::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

use crate::prefix::at;

/// Bytes of a token.
const TOKEN_BYTES: usize = 32;
/// The limit on browsers that stay signed in; the first one is signed out then.
const MAX_SESSIONS: usize = 16;

/// The hash of a token. Hashes may be compared byte by byte: how long that takes says nothing about the token.
type TokenHash = [u8; 32];

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}

pub(crate) fn new_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(hex(&bytes))
}

/// What a token of a link is good for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LinkUse {
    /// The first use: the token of a session, for the cookie.
    New(String),
    Used,
    Unknown,
}

#[derive(Debug, Default)]
struct State {
    is_used: bool,
    sessions: Vec<TokenHash>,
    /// The file that leads the browser here, which is deleted with the first use.
    file: Option<PathBuf>,
}

/// The link, and the sessions of browsers that used it.
#[derive(Debug)]
pub(crate) struct Login {
    link: TokenHash,
    cookie: String,
    state: Mutex<State>,
}

impl Login {
    /// Creates the token of the link for this port, and returns it.
    pub(crate) fn new(port: u16) -> io::Result<(Self, String)> {
        let token = new_token()?;
        // Two commands for one home have the same path, and browsers do not tell ports apart.
        let cookie = format!("chorus_web_{port}");
        Ok((Self { link: hash(&token), cookie, state: Mutex::new(State::default()) }, token))
    }

    /// Deletes `file` when the link is used, or with [`Self::forget_file`].
    pub(crate) fn remember_file(&self, file: PathBuf) {
        self.state.lock().file = Some(file);
    }

    pub(crate) fn forget_file(&self) {
        let file = self.state.lock().file.take();
        if let Some(file) = file {
            let _ = std::fs::remove_file(file);
        }
    }

    /// Uses the token of a link.
    pub(crate) fn use_link(&self, token: &str) -> io::Result<LinkUse> {
        if hash(token) != self.link {
            return Ok(LinkUse::Unknown);
        }
        let session = new_token()?;
        let mut state = self.state.lock();
        if state.is_used {
            return Ok(LinkUse::Used);
        }
        state.is_used = true;
        if state.sessions.len() == MAX_SESSIONS {
            state.sessions.remove(0);
        }
        state.sessions.push(hash(&session));
        drop(state);
        self.forget_file();
        Ok(LinkUse::New(session))
    }

    /// Returns the value of `Set-Cookie` for a session.
    pub(crate) fn set_cookie(&self, session: &str) -> String {
        format!("{}={session}; HttpOnly; SameSite=Strict; Path={}", self.cookie, at("/"))
    }

    /// Returns true if one of the cookies is that of a session.
    pub(crate) fn is_signed_in<'a>(&self, mut cookies: impl Iterator<Item = &'a str>) -> bool {
        let state = self.state.lock();
        cookies.any(|header| {
            header.split(';').filter_map(|pair| pair.trim().split_once('=')).any(|(name, value)| {
                let given = hash(value);
                name == self.cookie && state.sessions.contains(&given)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_used_once() {
        let (login, token) = Login::new(4000).expect("random bytes");
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_eq!(login.use_link("x").expect("use"), LinkUse::Unknown);
        let LinkUse::New(session) = login.use_link(&token).expect("use") else { panic!("not usable") };
        assert_eq!(login.use_link(&token).expect("use"), LinkUse::Used);
        let cookie = login.set_cookie(&session);
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        let sent = format!("a=b; chorus_web_4000={session}");
        assert!(login.is_signed_in([&*sent].into_iter()));
        for wrong in ["", "chorus_web_4000", "chorus_web_4000=", &*format!("chorus_web_4001={session}"), &*token] {
            assert!(!login.is_signed_in([wrong].into_iter()), "{wrong}");
        }
    }
}
