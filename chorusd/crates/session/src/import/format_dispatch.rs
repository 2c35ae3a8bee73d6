//! The entry point of an import: detects the format and calls its importer.

use std::io::{BufRead, Seek};

use chorus_proto::methods::import::ImportFormat;
use jiff::Timestamp;

use super::error::ImportError;
use super::sink::ImportSink;
use super::writer::SessionWriter;
use super::{
    aider, amp, chatgpt, chorus, claude_ai, claude_code, cline, codex, copilot, cursor, detect, gemini, gemini_apps,
    goose, hermes, librechat, markdown, open_webui, openai, opencode, pi, vscode_chat,
};

/// Imports every conversation of `source` into `sink` and returns its format.
///
/// `now` and `new_id` supply times and ids that the source lacks. Unreadable parts are skipped and reported to `sink`
/// with a reason. An error means that no message was imported, or that the source or the sink failed.
pub fn import(
    source: &mut (impl BufRead + Seek),
    format: ImportFormat,
    now: Timestamp,
    new_id: &mut dyn FnMut() -> String,
    sink: &mut dyn ImportSink,
) -> Result<ImportFormat, ImportError> {
    let format = match format {
        ImportFormat::Auto => detect(source)?,
        named => named,
    };
    source.rewind()?;
    let mut writer = SessionWriter::new(now, new_id, sink);
    match format {
        ImportFormat::Chorus => chorus::import(source, &mut writer)?,
        ImportFormat::ClaudeCode => claude_code::import(source, &mut writer)?,
        ImportFormat::Codex => codex::import(source, &mut writer)?,
        ImportFormat::Copilot => copilot::import(source, &mut writer)?,
        ImportFormat::Gemini => gemini::import(source, &mut writer)?,
        ImportFormat::Hermes => hermes::import(source, &mut writer)?,
        ImportFormat::Opencode => opencode::import(source, &mut writer)?,
        ImportFormat::Pi => pi::import(source, &mut writer)?,
        ImportFormat::Chatgpt => chatgpt::import(source, &mut writer)?,
        ImportFormat::ClaudeAi => claude_ai::import(source, &mut writer)?,
        ImportFormat::Librechat => librechat::import(source, &mut writer)?,
        ImportFormat::OpenWebui => open_webui::import(source, &mut writer)?,
        ImportFormat::Amp => amp::import(source, &mut writer)?,
        ImportFormat::Aider => aider::import(source, &mut writer)?,
        ImportFormat::Cline => cline::import(source, &mut writer)?,
        ImportFormat::GeminiApps => gemini_apps::import(source, &mut writer)?,
        ImportFormat::VscodeChat => vscode_chat::import(source, &mut writer)?,
        ImportFormat::Cursor => cursor::import(source, &mut writer)?,
        ImportFormat::Goose => goose::import(source, &mut writer)?,
        ImportFormat::Markdown => markdown::import(source, &mut writer)?,
        ImportFormat::Openai | ImportFormat::Auto => openai::import(source, &mut writer)?,
    }
    if writer.message_count() == 0 { Err(ImportError::NoMessages) } else { Ok(format) }
}
