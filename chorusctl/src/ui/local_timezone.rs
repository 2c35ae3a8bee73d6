//! Loads the local time zone from its file. Looking a zone up by name in jiff scans the directory of all zones first,
//! which takes longer than everything else here.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use jiff::tz::TimeZone;

/// Directories of zone files, by tzset(3) and common practice.
const ZONE_DIRS: [&str; 2] = ["/usr/share/zoneinfo", "/etc/zoneinfo"];

/// Returns the zone of `$TZ` or of the system.
pub(super) fn load() -> TimeZone {
    load_quick(std::env::var_os("TZ")).unwrap_or_else(TimeZone::system)
}

/// Loads the zone as tzset(3) defines it: unset `$TZ` is the system's zone, empty is UTC, otherwise a file by its path
/// or its name below the zone directories. `None` for anything else, which is left to jiff.
fn load_quick(variable: Option<OsString>) -> Option<TimeZone> {
    let Some(said) = variable else { return load_file(Path::new("/etc/localtime")) };
    let said = said.into_string().ok()?;
    let name = said.strip_prefix(':').unwrap_or(&said);
    if name.is_empty() || name == "UTC" {
        return Some(TimeZone::UTC);
    }
    let path = PathBuf::from(name);
    if path.is_absolute() {
        return load_file(&path);
    }
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    ZONE_DIRS.iter().filter(|_| plain).find_map(|folder| load_file(&Path::new(folder).join(&path)))
}

fn load_file(path: &Path) -> Option<TimeZone> {
    TimeZone::tzif("", &fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quick_way_gives_what_the_thorough_one_would() {
        let at = jiff::Timestamp::from_second(1_784_500_000).unwrap_or_default();
        for name in ["Europe/Berlin", ":America/New_York", "Asia/Kolkata"] {
            let Ok(thorough) = TimeZone::get(name.trim_start_matches(':')) else { continue };
            let offset = load_quick(Some(name.into())).map(|zone| zone.to_offset(at));
            assert_eq!(offset, Some(thorough.to_offset(at)), "{name}");
        }
        assert_eq!(load_quick(Some("".into())), Some(TimeZone::UTC));
        for left in ["CET-1CEST,M3.5.0,M10.5.0/3", "../../etc/passwd", "No/Where", "/etc/passwd"] {
            assert_eq!(load_quick(Some(left.into())), None, "{left}");
        }
    }
}
