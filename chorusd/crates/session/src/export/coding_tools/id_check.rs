//! Finds ids that a conversation uses more than once. Other programs expect that none is.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use serde::Deserialize;

use super::super::MessageList;

#[derive(Deserialize)]
struct IdProbe<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    tool_calls: Vec<CallProbe<'a>>,
}

#[derive(Deserialize)]
struct CallProbe<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
}

/// Returns the hashes of the ids of messages and of calls that occur more than once.
pub(super) fn find_repeated(messages: &dyn MessageList) -> io::Result<HashSet<u64>> {
    let (mut seen, mut repeated) = (HashSet::new(), HashSet::new());
    let mut add = |hash| {
        if !seen.insert(hash) {
            repeated.insert(hash);
        }
    };
    for message in messages.iter_from(0) {
        let message = message?;
        let ids: IdProbe<'_> = serde_json::from_slice(message.json())?;
        add(hash_of_message(&ids.id));
        ids.tool_calls.iter().for_each(|call| add(hash_of_call(&call.id)));
    }
    Ok(repeated)
}

pub(super) fn hash_of_message(id: &str) -> u64 {
    hash(("message", id))
}

pub(super) fn hash_of_call(id: &str) -> u64 {
    hash(("call", id))
}

fn hash(value: (&str, &str)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
