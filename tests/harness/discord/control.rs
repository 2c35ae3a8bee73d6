//! What a test has Discord do: faults, ends of connections, limits; and what came of it.

use std::time::Duration;

use serde_json::json;

use super::faults::{Fault, FaultRule};
use super::gateway::session::{Connection, ConnectionEnd};
use super::http::RecordedRequest;
use super::state::{StartLimit, State};
use super::{FakeDiscord, TOKEN};
use crate::wait::{DEADLINE, wait_until};

/// Codes after which a session cannot be taken up again.
const FINAL_CLOSE_CODES: [u16; 9] = [4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014];

fn for_each_connection(state: &mut State, deed: impl Fn(&mut Connection)) {
    state.connections.values_mut().for_each(deed);
}

impl FakeDiscord {
    /// Closes the gateway's connections with this code.
    pub fn close_connections(&self, code: u16) {
        self.shared.change(|state| {
            if FINAL_CLOSE_CODES.contains(&code) {
                state.sessions.clear();
            }
            for_each_connection(state, |connection| connection.close(code, "as the test says"));
        });
    }

    /// Breaks the gateway's connections without a word.
    pub fn reset_connections(&self) {
        self.shared
            .change(|state| for_each_connection(state, |connection| connection.end = Some(ConnectionEnd::Reset)));
    }

    /// Op 7: come again, and go on.
    pub fn request_reconnect(&self) {
        self.shared.change(|state| for_each_connection(state, |connection| connection.send_op(7, json!(null))));
    }

    /// Op 9: the session is invalid, or may be taken up.
    pub fn invalidate_sessions(&self, resumable: bool) {
        self.shared.change(|state| {
            if !resumable {
                state.sessions.clear();
            }
            for_each_connection(state, |connection| connection.send_op(9, json!(resumable)));
        });
    }

    /// The connections that there are stay, and nothing is said by them any more.
    pub fn silence_connections(&self) {
        self.shared.change(|state| for_each_connection(state, |connection| connection.is_silent = true));
    }

    /// Nobody can connect, and whoever is connected is cut off.
    pub fn refuse_connections(&self) {
        self.shared.change(|state| {
            state.is_refusing = true;
            for_each_connection(state, |connection| connection.end = Some(ConnectionEnd::Reset));
        });
    }

    /// They can again.
    pub fn accept_connections(&self) {
        self.shared.change(|state| state.is_refusing = false);
    }

    /// Sessions are forgotten, as after a long time: whoever was away has to begin anew.
    pub fn forget_sessions(&self) {
        self.shared.change(|state| state.sessions.retain(|_, session| session.connection.is_some()));
    }

    /// How many new connections are left, and when there are more.
    pub fn set_session_start_limit(&self, remaining: u64, reset_after: Duration) {
        self.shared.change(|state| state.start_limit = StartLimit { remaining, reset_after, ..state.start_limit });
    }

    /// How far apart new connections must be; 5 s unless told.
    pub fn set_identify_interval(&self, time: Duration) {
        self.shared.change(|state| state.identify_interval = time);
    }

    /// How often the next connections are to give a sign of life; 41.25 s unless told.
    pub fn set_heartbeat(&self, every: Duration) {
        self.shared.change(|state| state.heartbeat = every);
    }

    /// How long an interaction waits for its first answer; 3 s unless told.
    pub fn set_interaction_timeout(&self, time: Duration) {
        self.shared.change(|state| state.interaction_timeout = time);
    }

    /// The developer portal grants the content of messages, or takes it away: whoever asks for it is closed with 4014.
    pub fn set_message_content(&self, granted: bool) {
        self.shared.change(|state| state.message_content = granted);
    }

    /// The token is good for nothing any more, or again.
    pub fn set_token_revoked(&self, revoked: bool) {
        let token = if revoked { "none".to_owned() } else { TOKEN.to_owned() };
        self.shared.change(|state| state.token = token);
        if revoked {
            self.close_connections(4004);
        }
    }

    /// How long the nonce of a post is known; 5 min unless told.
    pub fn set_nonce_window(&self, time: Duration) {
        self.shared.change(|state| state.nonce_window = time);
    }

    /// From now on a route takes `limit` requests in `per`, says so in its headers, and refuses more.
    pub fn set_rate_limit(&self, limit: usize, per: Duration) {
        self.shared.change(|state| {
            (state.buckets.limit, state.buckets.per, state.buckets.is_enforced) = (limit, per, true);
        });
    }

    /// The next `times` requests of this form have this happen to them: `POST /channels/*/messages`, where a star is any one part or
    /// any method, and two stars at the end are any rest.
    pub fn inject_fault(&self, pattern: &str, times: usize, fault: Fault) {
        self.shared.change(|state| state.faults.push(FaultRule::new(pattern, times, fault)));
    }

    /// Nothing fails any more.
    pub fn clear_faults(&self) {
        self.shared.change(|state| state.faults.clear());
    }

    /// Lets requests go on that wait at the gate, and those that come to it later.
    pub fn open_gate(&self, gate: &str) {
        self.shared.change(|state| _ = state.open_gates.insert(gate.to_owned()));
    }

    /// Waits until a request has come to the gate.
    ///
    /// # Panics
    /// Where none comes.
    pub fn wait_for_gate(&self, gate: &str) {
        wait_until("a request at a gate", DEADLINE, || self.shared.state().reached_gates.contains(gate).then_some(()));
    }

    /// Sessions that were begun.
    #[must_use]
    pub fn identifies(&self) -> usize {
        self.shared.state().identifies
    }

    /// IDENTIFYs that came too soon after the one before, and got an op 9.
    #[must_use]
    pub fn identifies_refused(&self) -> usize {
        self.shared.state().identifies_refused
    }

    /// Sessions that were taken up again.
    #[must_use]
    pub fn resumes(&self) -> usize {
        self.shared.state().resumes
    }

    /// How often a list of commands was put.
    #[must_use]
    pub fn registrations(&self) -> usize {
        self.shared.state().registrations
    }

    /// The application listens.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.state().is_connected()
    }

    /// Waits until the application listens.
    ///
    /// # Panics
    /// Where it does not in time.
    pub fn wait_connected(&self) {
        wait_until("a connection to the gateway", DEADLINE, || self.is_connected().then_some(()));
    }

    /// Waits until it does not.
    ///
    /// # Panics
    /// Where it still does in the end.
    pub fn wait_disconnected(&self) {
        wait_until("the gateway's connection to end", DEADLINE, || (!self.is_connected()).then_some(()));
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().requests.clone()
    }

    /// The requests of a form, as for [`Discord::fail`].
    #[must_use]
    pub fn requests_to(&self, pattern: &str) -> Vec<RecordedRequest> {
        let form = FaultRule::new(pattern, 0, Fault::Reset);
        let mut requests = self.requests();
        requests.retain(|request| form.matches(&request.method, &request.path));
        requests
    }

    /// Waits until `count` requests of a form have come; they are returned.
    ///
    /// # Panics
    /// Where they do not come.
    #[must_use]
    pub fn wait_for_requests(&self, pattern: &str, count: usize) -> Vec<RecordedRequest> {
        wait_until(pattern, DEADLINE, || Some(self.requests_to(pattern)).filter(|all| all.len() >= count))
    }

    /// Something that happened on the gateway, as it stands: for events that nobody knows.
    pub fn dispatch_event(&self, kind: &str, data: &serde_json::Value) {
        self.shared.change(|state| state.dispatch(kind, 0, data));
    }
}
