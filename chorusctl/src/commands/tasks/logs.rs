//! `chorusctl tasks logs`: prints the output of a task.

use chorus_proto::methods::tasks::{Logs, LogsParams, LogsResult};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

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

pub fn run(args: Args, app: &mut App) -> Result<(), Error> {
    let mut params = LogsParams { id: args.id, offset: None, wait: args.follow };
    if args.follow {
        // No timeout: a task may print nothing for hours.
        app.client()?.set_timeout(None).map_err(chorus_proto::CallError::from)?;
    }
    let mut whole: Option<LogsResult> = None;
    loop {
        let raw = app.call_raw::<Logs>(&params)?;
        let page: LogsResult = parse_result(&raw)?;
        let next = page.next.filter(|_| args.follow || !page.data.is_empty());
        match app.stdout.format() {
            OutputFormat::Text => app.stdout.text(&sanitize::multi_line(&page.data))?,
            OutputFormat::Jsonl => app.stdout.json_line(&raw)?,
            OutputFormat::Json if args.follow => app.stdout.json_line(&raw)?,
            OutputFormat::Json => match &mut whole {
                None => whole = Some(page),
                Some(whole) => {
                    whole.data.push_str(&page.data);
                    (whole.task, whole.next) = (page.task, page.next);
                }
            },
        }
        if args.follow {
            app.stdout.flush()?;
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
            app.stdout.json_line(&text)
        }
    }
}
