//! `search`: finds what was said in conversations.

use jiff::Timestamp;
use uuid::Uuid;

use super::{method, wire};
use crate::ConversationRef;
use crate::message::Role;

method!(
    /// Finds messages of saved and live conversations, best first.
    Search = "search", SearchParams => SearchResult
);
method!(
    /// Shows the model by which messages are found by their meaning, or chooses another.
    Model = "search.model", ModelParams => ModelResult
);

#[wire(params)]
pub struct SearchParams {
    pub agent: Option<String>,
    /// Only in this conversation: its name or id, or `@` for the selected one.
    pub conversation: Option<String>,
    /// Search the conversations of all agents.
    pub all_agents: bool,
    /// `agent` is the caller's current agent and was not named by a person, so imported conversations are searched, too.
    pub own: bool,
    /// Words, `"a phrase"`, `prefix*` and `-excluded`; everything else is plain words. At least one must be searched for.
    pub query: String,
    /// Number of hits, by default 10, at most 100.
    pub limit: Option<u64>,
    /// Only messages since then: a duration back from now (`7d`, `1h30m`) or a date.
    pub since: Option<String>,
    /// Only messages before then, as `since`.
    pub until: Option<String>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Only messages of this role.
    pub role: Option<Role>,
    /// Only messages with a call of this tool.
    pub tool: Option<String>,
    /// Only messages from this source: `cli`, `discord`, `agent`, `import`, or the format of an import such as `claude-code`.
    pub source: Option<String>,
    /// Only sessions with this model.
    pub model: Option<String>,
    /// Only agents of this project; or, if it is the absolute path of a directory, imported conversations that were held in it
    /// or below it.
    pub project: Option<String>,
    /// By words, by meaning or by both. By default both if a model for that is chosen (`search.model`), else words.
    pub mode: Option<SearchMode>,
    /// Return the parts of each score, too.
    pub explain: bool,
    /// First wait until all that is there now is indexed; sends `progress` until then.
    pub wait: bool,
}

#[wire(PartialEq)]
pub struct SearchResult {
    /// Name of the agent that was searched; left out with `all_agents`.
    #[omit_empty]
    pub agent_name: Option<String>,
    /// Best first.
    pub hits: Vec<SearchHit>,
    pub index: SearchIndexState,
    /// How it was searched.
    #[omit_empty]
    pub mode: Option<SearchMode>,
    /// Warnings for people, such as that a word is in so many messages that it was ignored.
    #[omit_empty]
    pub warnings: Vec<String>,
}

/// The ways of searching.
#[wire(Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum SearchMode {
    /// By words.
    #[default]
    Text,
    /// By meaning.
    Semantic,
    /// By words and meaning.
    Hybrid,
}

/// One of `from`, `use` and `remove`, or none to see what is chosen.
#[wire(params)]
pub struct ModelParams {
    /// Absolute path of a directory with a sentence transformer: `model.onnx`, `tokenizer.json`. Its files are copied into the home.
    pub from: Option<String>,
    /// Model of a provider with the API of OpenAI: an alias or `provider/model`. It gets the texts of all messages.
    #[serde(rename = "use")]
    pub use_: Option<String>,
    /// Remove the model and all vectors; only words count then.
    pub remove: bool,
}

#[wire(PartialEq, Eq)]
pub struct ModelResult {
    /// Null if none is chosen.
    pub model: Option<EmbeddingModel>,
    /// The reason why nobody knows which one is chosen; messages are found by their words only.
    #[omit_empty]
    pub problem: Option<String>,
}

/// A model that makes vectors of messages, and how far it is.
#[wire(PartialEq, Eq)]
pub struct EmbeddingModel {
    /// `provider/model`, or the name of the directory that it came from.
    pub name: String,
    pub source: EmbeddingSource,
    /// Number of dimensions of its vectors.
    pub dimensions: u64,
    /// True if all indexed messages have a vector.
    pub complete: bool,
    /// Number of messages that have none yet; null if that is not known yet.
    pub waiting: Option<u64>,
    /// Name of the former model, whose vectors are used until those of this one are complete.
    #[omit_empty]
    pub replaces: Option<String>,
    /// Why no vectors are made at the moment.
    #[omit_empty]
    pub problem: Option<String>,
}

/// The place in which a model runs.
#[wire(Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EmbeddingSource {
    /// In the daemon.
    Local,
    Provider,
}

/// The progress of the search index.
#[wire(Copy, PartialEq, Eq)]
pub struct SearchIndexState {
    /// True if everything is indexed.
    pub complete: bool,
    /// Number of sessions and live conversations that are indexed.
    pub indexed: u64,
    /// Number of all sessions and live conversations.
    pub total: u64,
    /// Number of indexed messages. A message that several sessions share counts once.
    pub messages: u64,
}

/// Numbers of conversations that may wait to be indexed without that much is missing: those in which something was said just now. More
/// than `FEW_WAITING` must be at most a tenth of all.
const FEW_WAITING: u64 = 4;
const MAX_FEW_WAITING: u64 = 64;

impl SearchIndexState {
    /// Returns how much of the conversations is indexed, rounded down; `None` if next to nothing is missing. While turns run,
    /// there is always a live conversation with a message that is not indexed yet.
    #[must_use]
    pub fn percent_indexed(self) -> Option<u64> {
        let waiting = self.total.saturating_sub(self.indexed);
        let is_small_share = waiting <= MAX_FEW_WAITING && self.indexed >= waiting.saturating_mul(9);
        if self.complete || (self.indexed > 0 && (waiting <= FEW_WAITING || is_small_share)) {
            return None;
        }
        Some(self.indexed.saturating_mul(100).checked_div(self.total).unwrap_or(0))
    }
}

/// A message that was found, or a session whose title, summary or tags were.
#[wire(PartialEq)]
pub struct SearchHit {
    /// Current name of the agent.
    pub agent_name: String,
    /// True for an imported conversation, which every agent can use.
    #[omit_empty]
    pub imported: bool,
    /// The newest session with the message; null if only a live conversation has it.
    pub session: Option<FoundSession>,
    /// The conversation that it belongs to; left out for `main`.
    #[omit_empty]
    pub conversation: Option<ConversationRef>,
    pub title: Option<String>,
    /// Number of the message in the session or live conversation, from 1; null if the session's title, summary or tags
    /// were found.
    pub message: Option<u64>,
    /// Null without a message.
    pub role: Option<Role>,
    /// Name of the author, or of the agent; null without a message.
    pub speaker: Option<String>,
    /// Time of the message, or of the save.
    pub at: Timestamp,
    /// A part of the text, on one line.
    pub snippet: String,
    /// Start and end of each word in `snippet` that was found, in characters, in order.
    pub marks: Vec<(u64, u64)>,
    /// Number of other messages, at most two before or after it, that match less well and are not listed; left out for 0.
    #[omit_empty]
    pub nearby: Option<u64>,
    /// The score of the message, or of a better placed one of those next to it.
    pub score: f64,
    /// Parts of the score, with `explain`.
    #[omit_empty]
    pub parts: Vec<ScorePart>,
}

#[wire(PartialEq, Eq)]
pub struct FoundSession {
    pub id: Uuid,
    pub short_id: String,
    pub session_id: String,
}

#[wire(PartialEq)]
pub struct ScorePart {
    /// `words`, `meaning`, `neighbours`, `session`, `title` or `time`.
    pub name: String,
    pub value: f64,
}
