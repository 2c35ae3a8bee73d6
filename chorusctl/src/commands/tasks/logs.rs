//! `chorusctl tasks logs`: prints the output of a task.

use chorus_proto::methods::tasks::{Logs, LogsParams, LogsResult};

use crate::app::{App, parse_result};
use crate::error::Error;
use crate::ui::sanitize;
use crate::ui::stdout::OutputFormat;

/// Show the output of a task
///
/// Control characters are shown escaped; `tasks show` names the file with the raw bytes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Task, e.g. t12
    #[arg(value_name = "ID")]
    id: String,
    /// Keep following until the task ends
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
