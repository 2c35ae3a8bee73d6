//! Texts as the tokens of a model.

use kitoken::Kitoken;
use serde::Deserialize;
use serde_json::Value;

use crate::error::EmbeddingError;

/// Bytes of a text that are looked at for a token: more never fit.
const BYTES_PER_TOKEN: usize = 32;

/// The tokenizer of a model.
#[derive(Debug)]
pub struct Tokens {
    tokenizer: Kitoken,
    before: Vec<u32>,
    behind: Vec<u32>,
    limit: usize,
}

/// The part of tokenizer.json that says which tokens go around those of a text.
#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum Surroundings {
    TemplateProcessing {
        single: Vec<Piece>,
        special_tokens: std::collections::HashMap<String, SpecialToken>,
    },
    BertProcessing {
        cls: (String, u32),
        sep: (String, u32),
    },
    RobertaProcessing {
        cls: (String, u32),
        sep: (String, u32),
    },
    Sequence {
        processors: Vec<Surroundings>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
enum Piece {
    SpecialToken { id: String },
    Sequence {},
}

#[derive(Debug, Deserialize)]
struct SpecialToken {
    ids: Vec<u32>,
}

impl Tokens {
    /// Reads a tokenizer.json. A text has at most `limit` tokens, with those around it.
    ///
    /// # Errors
    /// Says why it cannot be used.
    pub fn new(json: &[u8], limit: usize) -> Result<Self, String> {
        let mut json: Value = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        // Both are done here, for each batch as it needs it.
        for part in ["padding", "truncation"] {
            json[part] = Value::Null;
        }
        let surroundings = match &json["post_processor"] {
            Value::Null => None,
            given => Some(Surroundings::deserialize(given).map_err(|error| error.to_string())?),
        };
        let (before, behind) = surroundings.map(surrounding_tokens).unwrap_or_default();
        if before.len() + behind.len() >= limit {
            return Err("it leaves no tokens for a text".into());
        }
        let bytes = serde_json::to_vec(&json).map_err(|error| error.to_string())?;
        let tokenizer = Kitoken::from_tokenizers_slice(&bytes).map_err(|error| error.to_string())?;
        Ok(Self { tokenizer, before, behind, limit })
    }

    /// Returns the tokens of a text after a prompt. What looks like a special token in it is text.
    ///
    /// # Errors
    /// Fails if the tokenizer does not know what to do with a part of the text.
    pub fn of(&self, prompt: &str, text: &str) -> Result<Vec<i32>, EmbeddingError> {
        let limit = self.limit * BYTES_PER_TOKEN;
        let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= limit).last().unwrap_or(0);
        let text = if text.len() <= limit { text } else { &text[..end] };
        let failed = |error: &dyn std::fmt::Display| EmbeddingError::Output(error.to_string());
        let tokens = match prompt {
            "" => self.tokenizer.encode(text, false),
            _ => self.tokenizer.encode(format!("{prompt}{text}"), false),
        };
        let tokens = tokens.map_err(|error| failed(&error))?;
        let room = self.limit - self.before.len() - self.behind.len();
        let all = self.before.iter().chain(tokens.iter().take(room)).chain(&self.behind);
        all.map(|id| i32::try_from(*id).map_err(|error| failed(&error))).collect()
    }
}

/// Returns the tokens before a text and behind it.
fn surrounding_tokens(surroundings: Surroundings) -> (Vec<u32>, Vec<u32>) {
    match surroundings {
        Surroundings::TemplateProcessing { single, special_tokens } => {
            let (mut before, mut behind, mut is_behind) = (Vec::new(), Vec::new(), false);
            for piece in single {
                match piece {
                    Piece::Sequence {} => is_behind = true,
                    Piece::SpecialToken { id } => {
                        let side = if is_behind { &mut behind } else { &mut before };
                        side.extend(special_tokens.get(&id).into_iter().flat_map(|token| &token.ids));
                    }
                }
            }
            (before, behind)
        }
        Surroundings::BertProcessing { cls, sep } | Surroundings::RobertaProcessing { cls, sep } => {
            (vec![cls.1], vec![sep.1])
        }
        Surroundings::Sequence { processors } => processors
            .into_iter()
            .map(surrounding_tokens)
            .find(|(before, behind)| !before.is_empty() || !behind.is_empty())
            .unwrap_or_default(),
        Surroundings::Other => Default::default(),
    }
}
