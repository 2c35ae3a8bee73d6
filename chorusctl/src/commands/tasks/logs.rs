//! `chorusctl tasks logs`.

use chorus_proto::methods::tasks::{Logs, LogsParams, LogsResult};

use crate::app::{App, read};
use crate::error::Failure;
use crate::ui::out::Format;
use crate::ui::safe;

/// Show what a task printed
///
/// What would drive a terminal is shown as signs; the bytes themselves are in the file that `tasks show` names.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The task, such as t12
    #[arg(value_name = "ID")]
    id: String,
    /// Go on with what comes, until the task has ended
    #[arg(long, short)]
    follow: bool,
}

/// Shows it.
///
/// # Errors
/// Why there is nothing to show.
pub fn run(args: Args, app: &mut App) -> Result<(), Failure> {
    let mut params = LogsParams { id: args.id, offset: None, wait: args.follow };
    if args.follow {
        // A task may be silent for hours.
        app.client()?.set_timeout(None).map_err(chorus_proto::CallError::from)?;
    }
    let mut whole: Option<LogsResult> = None;
    loop {
        let raw = app.call_raw::<Logs>(&params)?;
        let page: LogsResult = read(&raw)?;
        let next = page.next.filter(|_| args.follow || !page.data.is_empty());
        match app.out.format() {
            Format::Text => app.out.text(&safe::clean(&page.data))?,
            Format::Jsonl => app.out.json_line(&raw)?,
            Format::Json if args.follow => app.out.json_line(&raw)?,
            Format::Json => match &mut whole {
                None => whole = Some(page),
                Some(whole) => {
                    whole.data.push_str(&page.data);
                    (whole.task, whole.next) = (page.task, page.next);
                }
            },
        }
        if args.follow {
            app.out.flush()?;
        }
        if next.is_none() {
            break;
        }
        params.offset = next;
    }
    match whole {
        None => Ok(()),
        Some(whole) => {
            let text = serde_json::value::to_raw_value(&whole).map_err(chorus_proto::CallError::from)?;
            app.out.json_line(&text)
        }
    }
}
