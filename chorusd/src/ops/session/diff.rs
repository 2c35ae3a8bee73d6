//! `session.diff`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use chorus_proto::methods::tree::{DiffLine, DiffParams, DiffResult, Side};
use chorus_proto::{ErrorKind, SessionHeader};

use crate::agent::context::{Room, fitting};
use crate::failure::{Failure, Result};
use crate::message::Stored;
use crate::ops::{Ops, blocking, select, view};
use crate::session::FormatError;
use crate::session::stream::{Lines, say_the_same};
use crate::store::session_files;

/// Where two sessions part, and a page of what each says from there on. Both files are read message by message.
///
/// # Errors
/// `session_not_found`, `ambiguous`, `denied`, `corrupt_session`.
pub async fn diff(ops: &Ops, params: DiffParams) -> Result<DiffResult<Stored>> {
    let agent = select::agent(ops, params.agent.as_deref()).await?;
    let said = params.agent.is_some() && !params.own;
    let a = select::session(ops, &agent, said, &params.a).await?;
    let b = select::session(ops, &agent, said, &params.b).await?;
    let sources = [source(ops, &a.header).await?, source(ops, &b.header).await?];
    let (offset, limit) = (params.offset.unwrap_or(0), params.limit.unwrap_or(u64::MAX));
    let room = Room::of(ops.config.max_frame);
    let page = blocking(move || {
        let [a, b] = sources;
        page((Messages::open(a)?, Messages::open(b)?), (offset, limit), room)
    })
    .await?;
    let Page { common, lines, next } = page;
    Ok(DiffResult { a: view::session(ops, a).await?, b: view::session(ops, b).await?, common, lines, next })
}

/// A file, and the name of its session.
type Source = (PathBuf, String);

async fn source(ops: &Ops, header: &SessionHeader) -> Result<Source> {
    Ok((view::path(ops, header).await?, header.session_id.clone()))
}

/// The messages of a session in order.
struct Messages {
    path: PathBuf,
    name: String,
    from: From,
    count: u64,
}

enum From {
    Lines(Box<Lines<BufReader<File>>>),
    /// Of a file in another layout.
    Whole(std::vec::IntoIter<Stored>),
}

impl Messages {
    fn open((path, name): Source) -> Result<Self> {
        let from = match session_files::open(&path)? {
            Some(lines) => From::Lines(Box::new(lines)),
            None => From::Whole(whole(&path, &name)?.into_iter()),
        };
        Ok(Self { path, name, from, count: 0 })
    }

    /// The next message with its number, from 1.
    fn next(&mut self) -> Result<Option<(u64, Stored)>> {
        let message = match &mut self.from {
            From::Whole(messages) => messages.next(),
            From::Lines(lines) => {
                let read = lines.read().map_err(|e| session_files::reading(&self.path, &e))?;
                read.map_err(|e| corrupt(&self.name, &e))?
            }
        };
        self.count += u64::from(message.is_some());
        Ok(message.map(|message| (self.count, message)))
    }
}

fn whole(path: &Path, name: &str) -> Result<Vec<Stored>> {
    let file = session_files::read(path)?.file;
    file.map(|file| file.messages).map_err(|e| corrupt(name, &e))
}

fn corrupt(name: &str, error: &FormatError) -> Failure {
    Failure::new(ErrorKind::CorruptSession, format!("the file of {name} {error}"))
        .hint("the file was left as it is; mend it or put a copy in its place")
}

struct Page {
    common: u64,
    lines: Vec<DiffLine<Stored>>,
    next: Option<u64>,
}

/// Compares, and gathers the lines from `offset` on.
fn page((mut a, mut b): (Messages, Messages), (offset, limit): (u64, u64), room: Room) -> Result<Page> {
    let mut common = 0;
    let (mut of_a, mut of_b) = loop {
        match (a.next()?, b.next()?) {
            (Some(one), Some(other)) if say_the_same(&one.1, &other.1) => common += 1,
            parted => break parted,
        }
    };
    let (mut passed, mut bytes, mut lines) = (0_u64, 0, Vec::new());
    loop {
        let (side, found) = match of_a.take() {
            Some(found) => {
                of_a = a.next()?;
                (Side::A, found)
            }
            None => match of_b.take() {
                Some(found) => {
                    of_b = b.next()?;
                    (Side::B, found)
                }
                None => return Ok(Page { common, lines, next: None }),
            },
        };
        if passed >= offset {
            let (number, message) = (found.0, fitting(&found.1, room));
            bytes += message.json().len();
            let full = lines.len() as u64 >= limit || (bytes > room.page && !lines.is_empty());
            if full {
                return Ok(Page { common, lines, next: Some(passed).filter(|_| limit > 0) });
            }
            lines.push(DiffLine { side, number, message });
        }
        passed += 1;
    }
}
