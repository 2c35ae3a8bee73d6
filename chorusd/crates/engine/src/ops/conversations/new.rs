//! The operation `conversations.new`.

use chorus_base::error::{Error, Result};
use chorus_base::new_id;
use chorus_config::agent::check_name;
use chorus_journal::ConversationRow;
use chorus_proto::ErrorKind;
use chorus_proto::methods::conversations::{NewParams, NewResult};
use chorus_session::conversation::{ConversationKey, MAIN_CONVERSATION};
use chorus_session::slug;
use uuid::Uuid;

use crate::agent::agent_index::AgentEntry;
use crate::ops::agent::{AgentDescriber, AgentResolver};

/// The limit on the length of a title or an origin in characters.
const MAX_TEXT_CHARS: usize = 200;

/// Who wants a conversation: somebody by name, or a part of Chorus for something.
#[derive(Debug, Clone, Default)]
pub struct Opener {
    /// Names its purpose, for example a thread; unique within the agent.
    pub origin: Option<String>,
    /// By default the title of its newest session.
    pub title: Option<String>,
}

/// Creates a conversation, or opens a closed one with this name again.
///
/// # Errors
/// `invalid_name`; `already_exists` if an open conversation has the name and no origin is given.
pub async fn new(agents: &AgentResolver, describer: &AgentDescriber, params: NewParams) -> Result<NewResult> {
    let agent = agents.resolve(params.agent.as_deref()).await?;
    let opener = Opener { origin: params.origin, title: params.title };
    let (key, created) = agents.new_conversation(&agent, &params.name, opener).await?;
    Ok(NewResult { conversation: describer.describe_conversation(&agent, key).await?, created })
}

impl AgentResolver {
    /// Creates the agent's conversation `name`, or opens a closed one with this name again. With an origin, returns the
    /// conversation that has it, and a name that is taken gets a number. Also returns whether it is new.
    ///
    /// # Errors
    /// As [`new`].
    pub async fn new_conversation(
        &self,
        agent: &AgentEntry,
        name: &str,
        opener: Opener,
    ) -> Result<(ConversationKey, bool)> {
        let Opener { origin, title } = opener;
        for text in [&origin, &title].into_iter().flatten() {
            if text.trim().is_empty() || text.chars().count() > MAX_TEXT_CHARS {
                return Err(Error::invalid(format!("a title or an origin has 1 to {MAX_TEXT_CHARS} characters")));
            }
        }
        let (id, conversations) = (agent.settings.id, &self.index.conversations);
        let name = match &origin {
            Some(_) => name.to_owned(),
            None => {
                check_conversation_name(name)?;
                name.to_owned()
            }
        };
        let _one_at_a_time = self.conversation_locks.lock(id).await;
        let known = match &origin {
            Some(origin) => conversations.by_origin(id, origin),
            None => conversations.by_name(id, &name),
        };
        if let Some(row) = known {
            if origin.is_none() && row.closed_at.is_none() {
                return Err(exists_error(&agent.settings.name, &name));
            }
            let title = title.or_else(|| row.title.clone());
            if row.closed_at.is_some() || title != row.title {
                self.store_conversation(ConversationRow { closed_at: None, title, ..(*row).clone() }).await?;
            }
            return Ok((row.key, false));
        }
        let name = match &origin {
            Some(_) => slug::free_name(&valid_name(&name), |name| {
                name == MAIN_CONVERSATION || conversations.by_name(id, name).is_some()
            }),
            None => name,
        };
        let key =
            ConversationKey { agent: id, id: self.known_conversation_id(id, &name).await?.unwrap_or_else(new_id) };
        self.store_conversation(ConversationRow {
            key,
            name,
            origin,
            title,
            created_at: self.registry.now(),
            closed_at: None,
            is_selected: false,
            worktree: None,
        })
        .await?;
        Ok((key, true))
    }

    /// Returns the id that sessions give a conversation of this name which is not in the index: it is that of an agent
    /// that was imported, or damage took it. So the conversation has its sessions again.
    async fn known_conversation_id(&self, agent: Uuid, name: &str) -> Result<Option<Uuid>> {
        let ids = self.registry.sessions().conversations_named(agent, name.to_owned()).await?;
        let is_unknown = |id: &Uuid| self.index.conversations.get(ConversationKey { agent, id: *id }).is_none();
        Ok(ids.into_iter().find(is_unknown))
    }
}

/// Checks that `name` is valid and not that of the conversation that every agent has.
pub(super) fn check_conversation_name(name: &str) -> Result<()> {
    if name == MAIN_CONVERSATION {
        return Err(
            Error::new(ErrorKind::AlreadyExists, "every agent has the conversation main").hint("choose another name")
        );
    }
    if is_selector(name) {
        let as_what = if Uuid::try_parse(name).is_ok() { "an ID" } else { "a selector of sessions" };
        return Err(Error::new(ErrorKind::InvalidName, format!("{name:?} looks like {as_what}"))
            .hint("choose another name for the conversation"));
    }
    check_name(name)
        .map_err(|failure| Error { message: failure.message.replace("agent name", "conversation name"), ..failure })
}

/// Returns true if requests would take `name` for an id, or for a session by its number or age.
fn is_selector(name: &str) -> bool {
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    is_number || name == "latest" || Uuid::try_parse(name).is_ok()
}

pub(super) fn exists_error(agent: &str, name: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("agent {agent} has a conversation {name} already"))
        .hint(format!("use it: chorusctl --agent {agent} -C {name} …; or choose another name"))
}

/// Returns a valid name that resembles `wanted`, short enough for a number behind it.
fn valid_name(wanted: &str) -> String {
    let mut name: String = wanted
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' })
        .skip_while(|c| !c.is_ascii_alphanumeric())
        .take(56)
        .collect();
    while name.contains("--") {
        name = name.replace("--", "-");
    }
    name.truncate(name.trim_end_matches(['-', '_']).len());
    match &*name {
        "" => "conversation".to_owned(),
        taken if is_selector(taken) => format!("conversation-{taken}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_gives_a_valid_name() {
        for (wanted, name) in [
            ("discord-thread-Fix the Login!", "discord-thread-fix-the-login"),
            ("  --x", "x"),
            ("日本語", "conversation"),
            ("a  b", "a-b"),
            ("42", "conversation-42"),
            ("Latest", "conversation-latest"),
            ("019AC4E2-0000-7000-8000-000000000001", "conversation-019ac4e2-0000-7000-8000-000000000001"),
        ] {
            assert_eq!(valid_name(wanted), name);
        }
        assert_eq!(valid_name(&"x".repeat(100)).len(), 56);
        assert!(check_conversation_name(&valid_name("Ünï")).is_ok());
    }
}
