//! stub
use crate::{app::App, error::Failure};
/// Tour.
#[derive(Debug, clap::Args)]
pub struct Args {}
/// Run.
pub fn run(_: Args, _: &mut App) -> Result<(), Failure> {
    Ok(())
}
