//! `chorusctl backup -`: writes a backup to standard output as a tar archive.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chorus_proto::methods::backup::{ArchiveBegin, ArchiveBeginParams, ArchiveRead, ArchiveReadParams};

use crate::app::App;
use crate::error::Error;
use crate::ui::interruption::Interruption;
use crate::ui::progress_bar::ProgressBar;

/// Writes the archive to standard output while the daemon makes it.
///
/// # Errors
/// The archive is incomplete, or some files could not be read.
pub(super) fn run(app: &mut App) -> Result<(), Error> {
    let advice = "the archive is incomplete; run the same command again";
    let mut progress = ProgressBar::new("backup".into(), &["writing"], !app.global.quiet)
        .with_interruption(Interruption::explain(app.stderr, advice));
    let archive = app.call::<ArchiveBegin>(&ArchiveBeginParams {})?.archive;
    let mut out = io::stdout().lock();
    let mut done = 0;
    loop {
        let piece = app.call::<ArchiveRead>(&ArchiveReadParams { archive })?;
        let bytes = STANDARD.decode(&piece.data_base64);
        let bytes = bytes.map_err(|error| Error::failed(format!("the daemon sent invalid base64: {error}")))?;
        // A closed pipe is an error here, unlike for other output: the backup would be incomplete.
        let unwritten =
            |error| Error::failed(format!("failed to write the archive: {}", crate::error::os_error_text(&error)));
        out.write_all(&bytes).map_err(unwritten)?;
        done += bytes.len() as u64;
        progress.update(done, 0, "bytes");
        if let Some(made) = piece.summary {
            out.flush().map_err(unwritten)?;
            progress.finish();
            if !made.keys.is_empty() && !app.global.quiet {
                app.stderr.line(&format!("contains keys: {}", made.keys.join(", ")));
            }
            return super::print_warnings(app, &made);
        }
    }
}
