//! Converts a conversation for the chat completions API.

use std::borrow::Cow;

use chorus_config::{Provider, ProviderKind};
use chorus_proto::{Message, Role, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::super::request::{ModelRequest, OutputFormat, ToolSpec};
use super::super::images::{RenderedAttachment, render_attachment};
use super::super::tool_call_ids::{self, IdForm};
use super::super::tool_calls::ensure_object;

/// The only server that requires `max_completion_tokens`; the others know only `max_tokens`.
const OPENAI_URL: &str = "https://api.openai.com";

/// The only server that requires its own form of ids.
const MISTRAL_URL: &str = "https://api.mistral.ai";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    stream: bool,
    stream_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
}

#[derive(Serialize, Default)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// The provider blocks that a message stores.
#[derive(Deserialize)]
struct EchoedBlocks {
    kind: String,
    provider: String,
    blocks: Vec<EchoedBlock>,
}

#[derive(Deserialize)]
struct EchoedBlock {
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning_details: Option<Box<RawValue>>,
}

/// Builds the body of the request.
pub(super) fn build_body(provider: &Provider, model: &str, request: &ModelRequest) -> serde_json::Result<Vec<u8>> {
    let system =
        request.system.iter().filter(|piece| !piece.trim().is_empty()).cloned().collect::<Vec<_>>().join("\n\n");
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !system.is_empty() {
        messages.push(WireMessage {
            role: "system",
            content: Some(Content::Text(system.into())),
            ..WireMessage::default()
        });
    }
    // Reasoning belongs to the current turn; servers refuse that of earlier turns or bill it.
    let turn = request.messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    for (index, message) in request.messages.iter().enumerate() {
        messages.push(match message.role {
            Role::Assistant => assistant_message(provider, message, index > turn),
            Role::ToolResult => tool_result(message, id_form(provider)),
            // The window quotes system messages; one that is here all the same gets no more authority than a user.
            Role::User | Role::System => {
                WireMessage { role: "user", content: Some(user_content(message)), ..WireMessage::default() }
            }
        });
    }
    let newer = provider.base_url.starts_with(OPENAI_URL);
    serde_json::to_vec(&Body {
        model,
        messages,
        tools: request.tools.iter().map(|spec| tool_definition(spec)).collect(),
        tool_choice: (request.forbid_tool_calls && !request.tools.is_empty()).then_some("none"),
        response_format: request.output_format.map(output_format_json),
        stream: true,
        stream_options: json!({"include_usage": true}),
        max_tokens: (!newer).then_some(request.max_tokens),
        max_completion_tokens: newer.then_some(request.max_tokens),
    })
}

fn id_form(provider: &Provider) -> IdForm {
    if provider.base_url.starts_with(MISTRAL_URL) { IdForm::Nine } else { IdForm::Short }
}

fn tool_definition(spec: &ToolSpec) -> Value {
    let parameters = if spec.parameters.is_object() { spec.parameters.clone() } else { json!({"type": "object"}) };
    json!({
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    })
}

fn output_format_json(shape: &OutputFormat) -> Value {
    json!({
        "type": "json_schema",
        "json_schema": {
            "name": shape.name,
            "description": shape.description,
            "schema": (shape.schema)(),
            "strict": true,
        },
    })
}

fn user_content(message: &Message) -> Content<'_> {
    if message.attachments.is_empty() {
        return Content::Text(Cow::Borrowed(&message.content));
    }
    let shown: Vec<_> =
        message.attachments.iter().map(|attachment| render_attachment(attachment, ProviderKind::Openai)).collect();
    let said = Some(&*message.content).filter(|text| !text.trim().is_empty());
    // Some servers whose models accept no images refuse a list of parts.
    let notes: Option<Vec<&str>> = shown
        .iter()
        .map(|shown| if let RenderedAttachment::Note(note) = shown { Some(&**note) } else { None })
        .collect();
    if let Some(notes) = notes {
        return Content::Text(notes.into_iter().chain(said).collect::<Vec<_>>().join("\n").into());
    }
    let parts = shown.into_iter().map(|shown| match shown {
        RenderedAttachment::Data(kind, data) => image_part(&format!("data:{kind};base64,{data}")),
        RenderedAttachment::Url(url) => image_part(url),
        RenderedAttachment::Note(note) => json!({"type": "text", "text": note}),
    });
    Content::Parts(parts.chain(said.map(|text| json!({"type": "text", "text": text}))).collect())
}

fn image_part(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn assistant_message<'a>(provider: &Provider, message: &'a Message, goes_on: bool) -> WireMessage<'a> {
    let ids = id_form(provider);
    let kept = message.provider.as_ref().filter(|_| goes_on).and_then(|raw| serde_json::from_str(raw.get()).ok());
    let kept = kept.filter(|kept: &EchoedBlocks| kept.kind == super::BLOCK_KIND && kept.provider == provider.name);
    let tool_calls = message.tool_calls.iter().map(|made| tool_call(made, ids)).collect();
    let mut turn = WireMessage { role: "assistant", tool_calls, ..WireMessage::default() };
    if !message.content.is_empty() || turn.tool_calls.is_empty() {
        turn.content = Some(Content::Text(Cow::Borrowed(&message.content)));
    }
    for block in kept.into_iter().flat_map(|kept| kept.blocks) {
        turn.reasoning_content = block.reasoning_content.or(turn.reasoning_content);
        turn.reasoning_details = block.reasoning_details.or(turn.reasoning_details);
    }
    turn
}

/// Parameters are a JSON string here, with the digits of the message. vLLM, llama.cpp and Ollama parse it as an object.
fn tool_call(call: &ToolCall, ids: IdForm) -> Value {
    let function =
        json!({"name": tool_call_ids::sanitize_name(&call.name), "arguments": ensure_object(&call.params).get()});
    json!({"id": tool_call_ids::sanitize_id(&call.id, ids), "type": "function", "function": function})
}

fn tool_result(message: &Message, ids: IdForm) -> WireMessage<'_> {
    let text = &*message.content;
    // Only the text can tell the model that the call failed.
    let content = if message.is_error && !text.to_lowercase().starts_with("error") {
        Cow::Owned(format!("error: {text}"))
    } else {
        Cow::Borrowed(text)
    };
    WireMessage {
        role: "tool",
        content: Some(Content::Text(content)),
        tool_call_id: Some(tool_call_ids::sanitize_id(message.tool_call_id.as_deref().unwrap_or_default(), ids)),
        ..WireMessage::default()
    }
}
