//! Builds spans from what was recorded.

use std::collections::BTreeMap;
use std::sync::Arc;

use chorus_engine::ops::Ops;
use chorus_engine::traces::{ModelCallRecord, ToolCallRecord};
use chorus_engine::usage::CallKind;
use chorus_redact::Redactor;
use chorus_session::conversation::ConversationKey;
use jiff::Timestamp;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use uuid::Uuid;

use crate::attributes::Attributes;
use crate::messages::MessageFormat;
use crate::provider::ProviderNames;

/// Trace flags: sampled. A parent is known to be of this process.
const FLAGS: u32 = 0x101;

/// The data of a turn's span.
#[derive(Debug)]
pub(crate) struct TurnSummary {
    pub(crate) agent_name: String,
    /// `None` if it is unknown, because the turn made no call.
    pub(crate) conversation: Option<ConversationKey>,
    /// Provider and model of the last call.
    pub(crate) model: Option<(ProviderNames, String)>,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
    /// Class of the error, and its message if spans have texts.
    pub(crate) error: Option<(String, String)>,
}

/// Builds spans.
#[derive(Debug)]
pub(crate) struct SpanBuilder {
    providers: BTreeMap<String, ProviderNames>,
    redactor: Arc<Redactor>,
    has_content: bool,
}

impl SpanBuilder {
    pub(crate) fn new(ops: &Ops) -> Self {
        let config = &ops.config;
        let providers = config.providers.iter().map(|(name, provider)| (name.clone(), ProviderNames::of(provider)));
        Self { providers: providers.collect(), redactor: ops.redactor.clone(), has_content: config.traces.content }
    }

    /// Names the provider of a call.
    pub(crate) fn provider(&self, call: &ModelCallRecord) -> ProviderNames {
        let name = &call.model.provider;
        self.providers.get(name).cloned().unwrap_or_else(|| ProviderNames::unknown(name))
    }

    /// Builds the span of a turn, the root of its trace.
    pub(crate) fn turn(&self, turn: Uuid, summary: TurnSummary) -> Span {
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", "invoke_agent");
        if let Some((provider, model)) = summary.model {
            attributes.text("gen_ai.provider.name", provider.name);
            attributes.text("gen_ai.request.model", model);
            attributes.number("gen_ai.usage.input_tokens", summary.input_tokens);
            attributes.number("gen_ai.usage.output_tokens", summary.output_tokens);
        }
        add_agent(&mut attributes, summary.conversation, &summary.agent_name);
        let name = format!("invoke_agent {}", summary.agent_name);
        let span = Span { span_id: turn_span_id(turn), trace_id: trace_id(turn), name, ..Span::default() };
        let error = summary.error.as_ref().map(|(class, message)| (&**class, message.as_str()));
        self.finish(span, SpanKind::Internal, attributes, (summary.start, summary.end), error)
    }

    /// Builds the span of a model call.
    pub(crate) fn model_call(&self, call: &ModelCallRecord) -> Span {
        let (provider, outcome) = (self.provider(call), &call.outcome);
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", "chat");
        attributes.text("gen_ai.provider.name", provider.name);
        attributes.text("gen_ai.request.model", &*call.model.model);
        attributes.number("gen_ai.request.max_tokens", call.max_tokens);
        if let Some((host, port)) = provider.server {
            attributes.text("server.address", host);
            attributes.number("server.port", port);
        }
        if let Some(reason) = &outcome.finish_reason {
            attributes.list("gen_ai.response.finish_reasons", reason);
        }
        attributes.count("gen_ai.usage.input_tokens", outcome.usage.input_tokens);
        attributes.count("gen_ai.usage.output_tokens", outcome.usage.output_tokens);
        attributes.count("gen_ai.usage.cache_read.input_tokens", outcome.usage.cache_read_tokens);
        attributes.count("gen_ai.usage.cache_creation.input_tokens", outcome.cache_write_tokens);
        if let Some(cost) = outcome.usage.cost_usd {
            attributes.amount("chorus.cost_usd", cost);
        }
        add_agent(&mut attributes, Some(call.conversation), &call.agent_name);
        if call.kind != CallKind::Turn {
            attributes.text("chorus.purpose", call.kind.as_str());
        }
        let mut message = String::new();
        if let Some(content) = &call.content {
            let format = MessageFormat(&self.redactor);
            if let Some(system) = format.system(content) {
                attributes.text("gen_ai.system_instructions", system);
            }
            attributes.text("gen_ai.input.messages", format.input(content));
            if let Some(output) = format.output(content) {
                attributes.text("gen_ai.output.messages", output);
            }
            message = content.error.clone().unwrap_or_default();
        }
        let span = Span { name: format!("chat {}", call.model.model), ..child(call.turn) };
        let error = outcome.error_type.map(|class| (class, &*message));
        self.finish(span, SpanKind::Client, attributes, (call.start, call.end), error)
    }

    /// Builds the span of a call of a tool.
    pub(crate) fn tool_call(&self, call: &ToolCallRecord) -> Span {
        let mut attributes = Attributes::default();
        attributes.text("gen_ai.operation.name", "execute_tool");
        attributes.text("gen_ai.tool.name", &*call.name);
        attributes.text("gen_ai.tool.call.id", &*call.id);
        attributes.text("gen_ai.tool.type", "function");
        add_agent(&mut attributes, Some(call.conversation), &call.agent_name);
        let mut message = "";
        if let Some(content) = &call.content {
            let format = MessageFormat(&self.redactor);
            attributes.text("gen_ai.tool.call.arguments", format.arguments(&content.arguments).to_string());
            attributes.text("gen_ai.tool.call.result", format.text(&content.result));
            message = content.result.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        }
        let span = Span { name: format!("execute_tool {}", call.name), ..child(Some(call.turn)) };
        let error = call.error_type.map(|class| (class, message));
        self.finish(span, SpanKind::Internal, attributes, (call.start, call.end), error)
    }

    /// Adds kind, attributes, times and status. The message of an error may quote what was sent, so that it needs `content = true`.
    fn finish(
        &self,
        span: Span,
        kind: SpanKind,
        mut attributes: Attributes,
        (start, end): (Timestamp, Timestamp),
        error: Option<(&str, &str)>,
    ) -> Span {
        let status = error.map(|(class, message)| {
            attributes.text("error.type", class);
            let message = if self.has_content { MessageFormat(&self.redactor).text(message) } else { String::new() };
            Status { message, code: StatusCode::Error.into() }
        });
        Span {
            kind: kind.into(),
            flags: FLAGS,
            attributes: attributes.into_inner(),
            start_time_unix_nano: unix_nanos(start),
            // The clock may have been set back.
            end_time_unix_nano: unix_nanos(end.max(start)),
            status,
            ..span
        }
    }
}

fn add_agent(attributes: &mut Attributes, conversation: Option<ConversationKey>, name: &str) {
    attributes.text("gen_ai.agent.name", name);
    if let Some(conversation) = conversation {
        attributes.text("gen_ai.agent.id", conversation.agent.to_string());
        attributes.text("gen_ai.conversation.id", conversation.id.to_string());
    }
}

/// A span with a random id below the turn, or alone in a trace.
fn child(turn: Option<Uuid>) -> Span {
    let span_id = fastrand::u64(1..).to_be_bytes().to_vec();
    match turn {
        Some(turn) => Span { trace_id: trace_id(turn), parent_span_id: turn_span_id(turn), span_id, ..Span::default() },
        None => Span { trace_id: trace_id(chorus_base::new_id()), span_id, ..Span::default() },
    }
}

/// The id of the trace of a turn: its own.
fn trace_id(turn: Uuid) -> Vec<u8> {
    turn.as_bytes().to_vec()
}

/// The id of the span of a turn: the half of its id without the time.
fn turn_span_id(turn: Uuid) -> Vec<u8> {
    turn.as_bytes()[8..].to_vec()
}

fn unix_nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanosecond()).unwrap_or(0)
}
