//! Responses to commands and their form in Discord's API.

use serde_json::{Value, json};
use uuid::Uuid;

use super::text_format::truncate;

/// Characters that a message holds.
pub(super) const MAX_MESSAGE_CHARS: usize = 2000;

/// Discord's limit on the size of an attached file.
pub(super) const MAX_ATTACHMENT_BYTES: usize = 10 << 20;

/// Characters of a longer text that are shown above its file.
const MAX_EXCERPT_CHARS: usize = 1500;

/// A response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub text: String,
    /// Buttons of the first row.
    pub buttons: Vec<Button>,
    /// Further rows; with that of `buttons` at most five.
    pub rows: Vec<Vec<Button>>,
    /// An attached file: its name and its bytes, at most [`MAX_ATTACHMENT_BYTES`].
    pub file: Option<(String, Vec<u8>)>,
    /// Sent to everybody in the channel in addition.
    pub public_text: Option<String>,
    /// The session whose summary is pending. Once it is there, the response is rewritten; the text stays below.
    pub summary_of: Option<(Uuid, String)>,
}

/// A button of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Button {
    pub id: String,
    pub label: String,
    pub style: Style,
    pub disabled: bool,
}

/// The style of a button, as Discord numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Secondary = 2,
    Danger = 4,
}

impl Response {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Returns the request body, and the file if the text is too long for a message.
    pub(super) fn to_request(&self) -> (Value, Option<(String, Vec<u8>)>) {
        let long = self.text.chars().count() > MAX_MESSAGE_CHARS;
        let content = if long {
            format!("{}\n\nThe full text is in the attached file.", excerpt(&self.text))
        } else {
            self.text.clone()
        };
        let rows = std::iter::once(&self.buttons).chain(&self.rows).filter(|row| !row.is_empty());
        let row =
            |row: &Vec<Button>| json!({"type": 1, "components": row.iter().map(Button::to_json).collect::<Vec<_>>()});
        let rows: Vec<Value> = rows.map(row).collect();
        let body = json!({"content": content, "components": rows, "allowed_mentions": {"parse": []}});
        (body, self.file.clone().or_else(|| long.then(|| ("answer.md".to_owned(), self.text.clone().into_bytes()))))
    }
}

impl Button {
    fn to_json(&self) -> Value {
        let style = self.style as u8;
        json!({"type": 2, "style": style, "label": self.label, "custom_id": self.id, "disabled": self.disabled})
    }
}

/// Returns whole lines from the beginning of `text`; a code block that is cut is closed.
fn excerpt(text: &str) -> String {
    let start = truncate(text, MAX_EXCERPT_CHARS);
    // A single long line is cut.
    let end = start.rfind('\n').filter(|end| *end > start.len() / 2);
    let whole = end.map_or(&*start, |end| &start[..end]);
    let open = whole.lines().filter(|line| line.starts_with("```")).count() % 2 == 1;
    if open { format!("{whole}\n```") } else { whole.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_a_message_and_what_does_not_is_a_file_below_its_beginning() {
        let (body, file) = Response::new("ä".repeat(2000)).to_request();
        assert_eq!(body["content"].as_str().map(|text| text.chars().count()), Some(2000));
        assert_eq!((file, &body["components"], &body["allowed_mentions"]["parse"]), (None, &json!([]), &json!([])));
        let text = format!("head\n```\n{}```", "a line of it\n".repeat(400));
        let (body, file) = Response::new(text.clone()).to_request();
        let content = body["content"].as_str().unwrap();
        assert!(content.chars().count() <= 2000 && content.starts_with("head\n```\na line"));
        assert_eq!(content.matches("```").count(), 2);
        assert_eq!(file, Some(("answer.md".to_owned(), text.into_bytes())));
    }

    #[test]
    fn buttons_stand_in_one_row() {
        let button = Button { id: "history:x:2".into(), label: "▶".into(), style: Style::Secondary, disabled: true };
        let (body, _) = Response { buttons: vec![button.clone(), button], ..Response::new("x") }.to_request();
        let row = body["components"][0]["components"].as_array().unwrap();
        assert_eq!((row.len(), &row[0]["style"], &row[0]["disabled"]), (2, &json!(2), &json!(true)));
    }
}
