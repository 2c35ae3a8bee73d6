//! The metrics with their names, units and labels.

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds in seconds of the buckets for turns and model calls.
const SLOW_SECONDS: [f64; 12] = [0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

/// Upper bounds in seconds of the buckets for tools.
const TOOL_SECONDS: [f64; 9] = [0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

type FloatGauge = Gauge<f64, AtomicU64>;

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($field:ident),* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub(crate) struct $name {
            $(pub(crate) $field: String,)*
        })*
    };
}

labels! {
    /// The type of an event, such as `context.saved`.
    EventLabels { r#type }
    /// `finished` or `interrupted`, for spans `exported` or `dropped`.
    OutcomeLabels { outcome }
    /// The name of a tool, and `ok` or `error`.
    ToolLabels { tool, outcome }
    /// The reason for a save, such as `manual_save` or `idle_timeout`.
    TriggerLabels { trigger }
    /// `provider/model`, and the purpose of a call, such as `turn`.
    CallLabels { model, purpose }
    /// `provider/model`, and `input`, `output`, `cache_read` or `cache_write`.
    TokenLabels { model, kind }
    /// `provider/model`.
    ModelLabels { model }
    /// `active` or `idle`.
    StateLabels { state }
    /// The name of a file below `db/` in the home.
    FileLabels { file }
}

/// All metrics.
#[derive(Debug)]
pub(crate) struct Families {
    registry: Registry,
    pub(crate) events: Family<EventLabels, Counter>,
    pub(crate) missed_events: Counter,
    pub(crate) messages: Counter,
    pub(crate) turns: Family<OutcomeLabels, Counter>,
    pub(crate) turn_seconds: Histogram,
    pub(crate) running_turns: Gauge,
    pub(crate) tools: Family<ToolLabels, Counter>,
    pub(crate) tool_seconds: Histogram,
    pub(crate) saves: Family<TriggerLabels, Counter>,
    pub(crate) calls: Family<CallLabels, Counter>,
    pub(crate) call_seconds: Family<ModelLabels, Histogram>,
    pub(crate) tokens: Family<TokenLabels, Counter>,
    pub(crate) cost: Family<ModelLabels, Counter<f64, AtomicU64>>,
    pub(crate) unpriced_calls: Family<ModelLabels, Counter>,
    pub(crate) agents: Family<StateLabels, Gauge>,
    pub(crate) pending_approvals: Gauge,
    pub(crate) running_tasks: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) discord_connected: Gauge,
    pub(crate) discord_servers: Gauge,
    pub(crate) trace_spans: Family<OutcomeLabels, Counter>,
    pub(crate) resident_memory: Gauge,
    pub(crate) start_time: FloatGauge,
    pub(crate) file_bytes: Family<FileLabels, Gauge>,
}

impl Default for Families {
    fn default() -> Self {
        let slow = || Histogram::new(SLOW_SECONDS);
        let mut families = Self {
            registry: Registry::default(),
            events: Family::default(),
            missed_events: Counter::default(),
            messages: Counter::default(),
            turns: Family::default(),
            turn_seconds: slow(),
            running_turns: Gauge::default(),
            tools: Family::default(),
            tool_seconds: Histogram::new(TOOL_SECONDS),
            saves: Family::default(),
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(|| Histogram::new(SLOW_SECONDS)),
            tokens: Family::default(),
            cost: Family::default(),
            unpriced_calls: Family::default(),
            agents: Family::default(),
            pending_approvals: Gauge::default(),
            running_tasks: Gauge::default(),
            connections: Gauge::default(),
            discord_connected: Gauge::default(),
            discord_servers: Gauge::default(),
            trace_spans: Family::default(),
            resident_memory: Gauge::default(),
            start_time: FloatGauge::default(),
            file_bytes: Family::default(),
        };
        families.register();
        // So that the first turn is an increase.
        for outcome in ["finished", "interrupted"] {
            families.turns.get_or_create(&OutcomeLabels { outcome: outcome.to_owned() }).inc_by(0);
        }
        families
    }
}

impl Families {
    fn register(&mut self) {
        let version = Info::new(vec![("version", chorus_engine::ops::daemon::VERSION)]);
        let all = self.registry.sub_registry_with_prefix("chorus");
        all.register("build", "Version of chorusd", version);
        all.register("events", "Events by type", self.events.clone());
        all.register(
            "metrics_missed_events",
            "Events that these counters lack, because too many came at once",
            self.missed_events.clone(),
        );
        all.register("messages_appended", "Messages that were added to live conversations", self.messages.clone());
        all.register("turns", "Turns that ended", self.turns.clone());
        all.register_with_unit(
            "turn_duration",
            "Time from the start of a turn to its end",
            Unit::Seconds,
            self.turn_seconds.clone(),
        );
        all.register("running_turns", "Turns that run now", self.running_turns.clone());
        all.register("tool_calls", "Calls of tools that ended", self.tools.clone());
        all.register_with_unit(
            "tool_duration",
            "Time that calls of tools took",
            Unit::Seconds,
            self.tool_seconds.clone(),
        );
        all.register("saves", "Conversations that were saved", self.saves.clone());
        all.register("model_calls", "Calls of models that used tokens", self.calls.clone());
        all.register_with_unit(
            "model_call_duration",
            "Time that calls of models took",
            Unit::Seconds,
            self.call_seconds.clone(),
        );
        all.register(
            "model_tokens",
            "Tokens that models counted; input includes what was read from the cache",
            self.tokens.clone(),
        );
        all.register("model_cost_usd", "Cost in US dollars of calls with a known price", self.cost.clone());
        all.register("model_unpriced_calls", "Calls without a known price", self.unpriced_calls.clone());
        all.register("agents", "Agents with a live conversation, and others", self.agents.clone());
        all.register("pending_approvals", "Approvals without an answer", self.pending_approvals.clone());
        all.register("running_tasks", "Background commands that run now", self.running_tasks.clone());
        all.register("connections", "Clients that are connected to the socket", self.connections.clone());
        all.register("discord_connected", "1 if Discord is connected", self.discord_connected.clone());
        all.register("discord_servers", "Servers of Discord that it is in", self.discord_servers.clone());
        all.register("trace_spans", "Spans that a collector has accepted, and others", self.trace_spans.clone());
        all.register_with_unit(
            "database_size",
            "Size of each file of the databases",
            Unit::Bytes,
            self.file_bytes.clone(),
        );
        let process = self.registry.sub_registry_with_prefix("process");
        process.register_with_unit("resident_memory", "Resident memory", Unit::Bytes, self.resident_memory.clone());
        process.register_with_unit("start_time", "Start as seconds since 1970", Unit::Seconds, self.start_time.clone());
    }

    /// Returns all of them in the format OpenMetrics.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        if encode(&mut text, &self.registry).is_err() {
            let _ = text.write_str("# EOF\n");
        }
        text
    }
}
