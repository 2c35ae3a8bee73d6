//! Responses to interactions, and the registration of slash commands.

use super::{Request, Route};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use serenity::model::id::{ApplicationId, GuildId, InteractionId};

use super::{RestClient, RestError};

/// An interaction and the token to respond with, which is valid for 15 minutes.
#[derive(Debug, Clone)]
pub(crate) struct InteractionRef {
    pub id: InteractionId,
    pub application: ApplicationId,
    pub token: String,
}

/// The initial response, which Discord expects within 3 seconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InitialResponse {
    /// The response follows; if `private`, only the caller sees it.
    Defer { private: bool },
    /// The message of the button may be edited later.
    DeferUpdate,
    /// A private text, and nothing more.
    PrivateMessage(String),
    /// Autocomplete choices: names and values.
    Choices(Vec<(String, String)>),
    /// A form with one text; what is typed comes as an interaction of its own with this custom id.
    Form { custom_id: String, title: &'static str, label: &'static str },
}

/// Limit on the text that is typed into a form, in characters; 4 bytes each at most.
const MAX_FORM_TEXT: u64 = 1000;

/// The flag of private messages.
const EPHEMERAL_FLAG: u64 = 1 << 6;

impl InitialResponse {
    fn to_json(&self) -> Value {
        match self {
            Self::Defer { private: true } => json!({"type": 5, "data": {"flags": EPHEMERAL_FLAG}}),
            Self::Defer { private: false } => json!({"type": 5}),
            Self::DeferUpdate => json!({"type": 6}),
            Self::PrivateMessage(content) => {
                let data = json!({"content": content, "flags": EPHEMERAL_FLAG, "allowed_mentions": {"parse": []}});
                json!({"type": 4, "data": data})
            }
            Self::Choices(choices) => {
                let choices: Vec<Value> =
                    choices.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                json!({"type": 8, "data": {"choices": choices}})
            }
            Self::Form { custom_id, title, label } => {
                let input = json!({"type": 4, "custom_id": "text", "style": 2, "label": label, "required": false,
                    "max_length": MAX_FORM_TEXT});
                let rows = json!([{"type": 1, "components": [input]}]);
                json!({"type": 9, "data": {"custom_id": custom_id, "title": title, "components": rows}})
            }
        }
    }
}

impl RestClient {
    /// Sends the initial response.
    ///
    /// # Errors
    /// After an error of Discord the interaction must not be acted on.
    pub(crate) async fn create_response(&self, way: &InteractionRef, first: &InitialResponse) -> Result<(), RestError> {
        let route = Route::InteractionResponse { interaction_id: way.id, token: &way.token };
        self.execute(Request::json(Method::POST, route, &first.to_json())?).await
    }

    /// Replaces the initial response by `body`, or edits the message of a button.
    pub(crate) async fn edit_response(
        &self,
        way: &InteractionRef,
        mut body: Value,
        file: Option<(String, Vec<u8>)>,
    ) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        // Without a file the list is empty: the previous page may have had one.
        body["attachments"] = file.iter().map(|(name, _)| json!({"id": 0, "filename": name})).collect();
        let file = file.as_ref().map(|(name, bytes)| (&**name, &**bytes));
        self.background().execute(Request::with_file(Method::PATCH, route, &body, file)?).await
    }

    /// Deletes the initial response.
    pub(crate) async fn delete_response(&self, way: &InteractionRef) -> Result<(), RestError> {
        let route = Route::WebhookOriginalInteractionResponse { application_id: way.application, token: &way.token };
        self.background().execute(Request::new(Method::DELETE, route)).await
    }

    /// Sends a follow-up message.
    pub(crate) async fn create_followup(
        &self,
        way: &InteractionRef,
        content: &str,
        private: bool,
    ) -> Result<(), RestError> {
        let route = Route::WebhookFollowupMessages { application_id: way.application, token: &way.token };
        let flags = if private { EPHEMERAL_FLAG } else { 0 };
        let body = json!({"content": content, "flags": flags, "allowed_mentions": {"parse": []}});
        self.background().execute(Request::json(Method::POST, route, &body)?).await
    }

    /// Registers all commands in a guild, or all global ones; nobody waits for it.
    pub(crate) async fn set_commands(
        &self,
        application: ApplicationId,
        guild: Option<GuildId>,
        commands: &impl Serialize,
    ) -> Result<(), RestError> {
        let route = match guild {
            Some(guild_id) => Route::GuildCommands { application_id: application, guild_id },
            None => Route::ApplicationCommands { application_id: application },
        };
        self.background().execute(Request::json(Method::PUT, route, commands)?).await
    }
}
