//! Controls of the fake for tests: faults, closed connections, limits; and counters.

use std::time::{Duration, Instant};

use serde_json::json;

use super::faults::{Fault, FaultRule};
use super::gateway::session::{Connection, ConnectionEnd};
use super::http::RecordedRequest;
use super::state::{StartLimit, State};
use super::{FakeDiscord, GuildHandle, TOKEN};
use crate::wait::{DEADLINE, wait_until};

/// Close codes after which a session cannot be resumed.
const FINAL_CLOSE_CODES: [u16; 9] = [4003, 4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014];

fn for_each_connection(state: &mut State, deed: impl Fn(&mut Connection)) {
    state.connections.values_mut().for_each(deed);
}

impl FakeDiscord {
    /// Closes the gateway connections with this code.
    pub fn close_connections(&self, code: u16) {
        self.shared.change(|state| {
            if FINAL_CLOSE_CODES.contains(&code) {
                state.sessions.clear();
            }
            for_each_connection(state, |connection| connection.close(code, "as the test says"));
        });
    }

    /// Resets the gateway connections without a close frame.
    pub fn reset_connections(&self) {
        self.shared
            .change(|state| for_each_connection(state, |connection| connection.end = Some(ConnectionEnd::Reset)));
    }

    /// Sends op 7: the application should reconnect and resume.
    pub fn request_reconnect(&self) {
        self.shared.change(|state| for_each_connection(state, |connection| connection.send_op(7, json!(null))));
    }

    /// Sends op 9: the session is invalid, and may be resumed or not.
    pub fn invalidate_sessions(&self, resumable: bool) {
        self.shared.change(|state| {
            if !resumable {
                state.sessions.clear();
            }
            for_each_connection(state, |connection| connection.send_op(9, json!(resumable)));
        });
    }

    /// Keeps the open gateway connections, but sends nothing on them any more.
    pub fn silence_connections(&self) {
        self.shared.change(|state| for_each_connection(state, |connection| connection.is_silent = true));
    }

    /// Refuses new connections, and resets those that are open.
    pub fn refuse_connections(&self) {
        self.shared.change(|state| {
            state.is_refusing = true;
            for_each_connection(state, |connection| connection.end = Some(ConnectionEnd::Reset));
        });
    }

    /// Accepts connections again.
    pub fn accept_connections(&self) {
        self.shared.change(|state| state.is_refusing = false);
    }

    /// Forgets the sessions without a connection, as Discord does after a long time: they cannot be resumed.
    pub fn forget_sessions(&self) {
        self.shared.change(|state| state.sessions.retain(|_, session| session.connection.is_some()));
    }

    /// Sets how many sessions may be begun, and when there are more.
    pub fn set_session_start_limit(&self, remaining: u64, reset_after: Duration) {
        self.shared.change(|state| state.start_limit = StartLimit { remaining, reset_after, ..state.start_limit });
    }

    /// Sets the shortest time between two IDENTIFYs; 5 s by default.
    pub fn set_identify_interval(&self, time: Duration) {
        self.shared.change(|state| state.identify_interval = time);
    }

    /// Sets the number of shards that is recommended, and how many of them may begin a session at the same time.
    pub fn recommend_shards(&self, shards: u64, max_concurrency: u64) {
        self.shared.change(|state| (state.recommended_shards, state.max_concurrency) = (shards, max_concurrency));
    }

    /// Sets how many guilds a shard may have; 2,500 by default.
    pub fn set_max_guilds_per_shard(&self, most: usize) {
        self.shared.change(|state| state.max_guilds = most);
    }

    /// Returns the shards that are connected, each with the number of shards.
    #[must_use]
    pub fn connected_shards(&self) -> Vec<(u64, u64)> {
        let state = self.shared.state();
        let is_ready = |id: u64| state.connections.get(&id).is_some_and(|connection| connection.is_ready_sent);
        let open = state.sessions.values().filter(|session| session.connection.is_some_and(is_ready));
        let mut shards: Vec<_> = open.map(|session| session.shard).collect();
        shards.sort_unstable();
        shards
    }

    /// Creates a guild that belongs to a shard, before the application connects.
    ///
    /// # Panics
    /// If none does.
    #[must_use]
    pub fn create_guild_of_shard(&self, name: &str, (shard, count): (u64, u64)) -> GuildHandle {
        // The upper bits of ids are a time in milliseconds.
        wait_until("an id of this shard", DEADLINE, || {
            let guild = GuildHandle::new(&self.shared, name);
            let is_of_shard = (guild.id >> 22) % count == shard;
            if !is_of_shard {
                self.shared.change(|state| state.guilds.retain(|other| other.id != guild.id));
            }
            is_of_shard.then_some(guild)
        })
    }

    /// Sets the heartbeat interval of the next connections; 41.25 s by default.
    pub fn set_heartbeat(&self, every: Duration) {
        self.shared.change(|state| state.heartbeat = every);
    }

    /// Returns the longest time between two heartbeats of a connection since the last call.
    pub fn take_longest_heartbeat_gap(&self) -> Duration {
        self.shared.change(|state| std::mem::take(&mut state.longest_heartbeat_gap))
    }

    /// Sets how long an interaction waits for its initial response; 3 s by default.
    pub fn set_interaction_timeout(&self, time: Duration) {
        self.shared.change(|state| state.interaction_timeout = time);
    }

    /// Grants the Message Content intent in the developer portal, or revokes it: without it, an application that
    /// requests it is closed with 4014.
    pub fn set_message_content(&self, granted: bool) {
        self.shared.change(|state| state.message_content = granted);
    }

    /// Revokes the token, or makes it valid again.
    pub fn set_token_revoked(&self, revoked: bool) {
        let token = if revoked { "none".to_owned() } else { TOKEN.to_owned() };
        self.shared.change(|state| state.token = token);
        if revoked {
            self.close_connections(4004);
        }
    }

    /// Sets how long the nonce of a message is recognized; 5 min by default.
    pub fn set_nonce_window(&self, time: Duration) {
        self.shared.change(|state| state.nonce_window = time);
    }

    /// From now on each bucket allows `limit` requests in `per`, says so in its headers, and refuses more.
    pub fn set_rate_limit(&self, limit: usize, per: Duration) {
        self.shared.change(|state| {
            (state.buckets.limit, state.buckets.per, state.buckets.is_enforced) = (limit, per, true);
        });
    }

    /// Injects a fault into the next `times` requests that match `pattern`, for example `POST /channels/*/messages`. A
    /// star stands for one segment, or for any method; two stars at the end stand for any rest.
    pub fn inject_fault(&self, pattern: &str, times: usize, fault: Fault) {
        self.shared.change(|state| state.faults.push(FaultRule::new(pattern, times, fault)));
    }

    /// Removes all faults.
    pub fn clear_faults(&self) {
        self.shared.change(|state| state.faults.clear());
    }

    /// Opens a gate, for requests that wait at it and for later ones.
    pub fn open_gate(&self, gate: &str) {
        self.shared.change(|state| _ = state.open_gates.insert(gate.to_owned()));
    }

    /// Waits until a request has reached the gate.
    ///
    /// # Panics
    /// If none does in time.
    pub fn wait_for_gate(&self, gate: &str) {
        wait_until("a request at a gate", DEADLINE, || self.shared.state().reached_gates.contains(gate).then_some(()));
    }

    /// Returns how many sessions were begun.
    #[must_use]
    pub fn identifies(&self) -> usize {
        self.shared.state().identifies
    }

    /// Returns how many IDENTIFYs came too soon after the previous one, and got an op 9.
    #[must_use]
    pub fn identifies_refused(&self) -> usize {
        self.shared.state().identifies_refused
    }

    /// Returns how many sessions were resumed.
    #[must_use]
    pub fn resumes(&self) -> usize {
        self.shared.state().resumes
    }

    /// Closes the connections of the next `count` RESUMEs with 4000, after which they may be tried again.
    pub fn fail_resumes(&self, count: usize) {
        self.shared.change(|state| state.resumes_to_fail = count);
    }

    /// Returns when RESUMEs failed because of [`FakeDiscord::fail_resumes`].
    #[must_use]
    pub fn failed_resumes(&self) -> Vec<Instant> {
        self.shared.state().failed_resumes.clone()
    }

    /// Returns how often a list of commands was registered.
    #[must_use]
    pub fn registrations(&self) -> usize {
        self.shared.state().registrations
    }

    /// Returns whether the application is connected to the gateway.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.shared.state().is_connected()
    }

    /// Waits until the application is connected.
    ///
    /// # Panics
    /// If it is not in time.
    pub fn wait_connected(&self) {
        wait_until("a connection to the gateway", DEADLINE, || self.is_connected().then_some(()));
    }

    /// Waits until the application is not connected.
    ///
    /// # Panics
    /// If it still is in the end.
    pub fn wait_disconnected(&self) {
        wait_until("the gateway's connection to end", DEADLINE, || (!self.is_connected()).then_some(()));
    }

    /// Returns every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.state().requests.clone()
    }

    /// Returns the requests that match a pattern, as for [`FakeDiscord::inject_fault`].
    #[must_use]
    pub fn requests_to(&self, pattern: &str) -> Vec<RecordedRequest> {
        let form = FaultRule::new(pattern, 0, Fault::Reset);
        let mut requests = self.requests();
        requests.retain(|request| form.matches(&request.method, &request.path));
        requests
    }

    /// Waits until `count` requests that match a pattern were received, and returns them.
    ///
    /// # Panics
    /// If they do not arrive in time.
    #[must_use]
    pub fn wait_for_requests(&self, pattern: &str, count: usize) -> Vec<RecordedRequest> {
        wait_until(pattern, DEADLINE, || Some(self.requests_to(pattern)).filter(|all| all.len() >= count))
    }

    /// Dispatches an event as it is, for events of unknown types.
    pub fn dispatch_event(&self, kind: &str, data: &serde_json::Value) {
        self.shared.change(|state| state.dispatch(kind, 0, data));
    }
}
