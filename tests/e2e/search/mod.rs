//! Finding what was said.

mod cli;
mod filters;
mod index;
mod interactive;
mod live;
mod meaning;
mod privacy;
mod recall;
mod removal;

use chorus_proto::Client;
use chorus_proto::methods::daemon::{Status, StatusParams};
use chorus_proto::methods::search::{Search, SearchHit, SearchIndexState, SearchParams, SearchResult};
use chorus_tests::wait::DEADLINE;
use chorus_tests::wait_until;

fn query(text: &str) -> SearchParams {
    SearchParams { query: text.into(), all_agents: true, ..Default::default() }
}

fn search(client: &mut Client, params: &SearchParams) -> SearchResult {
    client.call::<Search>(params).expect("search")
}

/// Searches until there are hits.
fn find(client: &mut Client, text: &str) -> Vec<SearchHit> {
    find_with(client, &query(text))
}

fn find_with(client: &mut Client, params: &SearchParams) -> Vec<SearchHit> {
    let what = format!("a hit of {:?}", params.query);
    wait_until(&what, DEADLINE, || found(client, params).filter(|hits| !hits.is_empty()))
}

/// Searches until there are none.
fn find_nothing(client: &mut Client, text: &str) {
    let what = format!("no hit of {text:?}");
    wait_until(&what, DEADLINE, || found(client, &query(text)).filter(Vec::is_empty));
}

/// Returns the hits; `None` while the index is being opened.
fn found(client: &mut Client, params: &SearchParams) -> Option<Vec<SearchHit>> {
    match client.call::<Search>(params) {
        Ok(result) => Some(result.hits),
        Err(chorus_proto::CallError::Rpc(error)) if error.kind() == chorus_proto::ErrorKind::Busy => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn index_state(client: &mut Client) -> SearchIndexState {
    client.call::<Status>(&StatusParams::default()).expect("status").search.expect("an index")
}

pub(crate) fn wait_until_complete(client: &mut Client) -> SearchIndexState {
    wait_until("the index", DEADLINE, || {
        // Nobody else is in a hurry.
        let _ = found(client, &query("x"));
        Some(index_state(client)).filter(|state| state.complete)
    })
}
