//! The imports and exports of a client that other nodes have: what continues one goes where it began.

use std::collections::HashMap;

use chorus_base::error::Elsewhere;
use chorus_base::sync::Mutex;
use chorus_proto::methods::{Method, agent_transfer, import};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The kinds of transfers. Each kind has numbers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TransferKind {
    Transcript,
    AgentExport,
}

/// The transfers of one client on other nodes.
#[derive(Debug, Default)]
pub(super) struct RemoteTransfers {
    nodes: Mutex<HashMap<(TransferKind, u64), Elsewhere>>,
}

/// The parameter of a request that continues a transfer.
#[derive(Deserialize)]
struct Continued {
    import: Option<u64>,
    export: Option<u64>,
}

/// The reply to a request that begins one.
#[derive(Deserialize)]
struct Begun {
    result: Option<Continued>,
}

impl TransferKind {
    /// Returns the kind of transfer that a method begins, for those that concern an agent. An import of an agent begins
    /// where its client is.
    pub(super) fn begun_by(method: &str) -> Option<Self> {
        match method {
            import::Begin::NAME => Some(Self::Transcript),
            agent_transfer::ExportBegin::NAME => Some(Self::AgentExport),
            _ => None,
        }
    }

    fn continued_by(method: &str) -> Option<Self> {
        match method {
            import::Add::NAME | import::Commit::NAME => Some(Self::Transcript),
            agent_transfer::ExportRead::NAME => Some(Self::AgentExport),
            _ => None,
        }
    }
}

impl RemoteTransfers {
    /// Remembers the transfer that a node has begun, if `reply` says so.
    pub(super) fn note(&self, kind: TransferKind, reply: &[u8], there: &Elsewhere) {
        let begun: Option<Begun> = serde_json::from_slice(reply).ok();
        if let Some(number) = begun.and_then(|begun| begun.result).and_then(|begun| begun.import.or(begun.export)) {
            self.nodes.lock().insert((kind, number), there.clone());
        }
    }

    /// Returns the node that has the transfer which a request continues.
    pub(super) fn find(&self, method: &str, params: Option<&RawValue>) -> Option<Elsewhere> {
        let kind = TransferKind::continued_by(method)?;
        let nodes = self.nodes.lock();
        if nodes.is_empty() {
            return None;
        }
        let continued: Continued = serde_json::from_str(params?.get()).ok()?;
        nodes.get(&(kind, continued.import.or(continued.export)?)).cloned()
    }
}
