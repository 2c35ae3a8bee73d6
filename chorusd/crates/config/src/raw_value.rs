//! Values of the configuration, from TOML or from the environment, and their conversions.

use std::time::Duration;

use toml::de::DeValue;

/// A value before it is converted to the type of its key. Values from the environment are always text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawConfigValue {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A list of texts.
    List(Vec<String>),
    /// A type that no key has.
    Other,
}

impl RawConfigValue {
    pub(crate) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).map_or(Self::Other, Self::Integer)
            }
            DeValue::Float(number) => number.as_str().parse().map_or(Self::Other, Self::Float),
            DeValue::Boolean(value) => Self::Boolean(*value),
            DeValue::Array(list) => {
                let texts = list.iter().map(|entry| match entry.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    DeValue::Integer(number) => Some(number.to_string()),
                    _ => None,
                });
                texts.collect::<Option<_>>().map_or(Self::Other, Self::List)
            }
            _ => Self::Other,
        }
    }

    pub(crate) fn text(&self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            _ => Err("must be a string in quotes".into()),
        }
    }

    /// A list of texts, separated by commas in the environment.
    pub(crate) fn list(&self) -> Result<Vec<String>, String> {
        match self {
            Self::List(texts) => Ok(texts.clone()),
            Self::Text(text) => {
                Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
            }
            _ => Err("must be a list of texts such as [\"a\", \"b\"]".into()),
        }
    }

    pub(crate) fn boolean(&self) -> Result<bool, String> {
        match self {
            Self::Boolean(value) => Ok(*value),
            Self::Text(text) if text == "true" => Ok(true),
            Self::Text(text) if text == "false" => Ok(false),
            _ => Err("must be true or false".into()),
        }
    }

    pub(crate) fn count(&self) -> Result<u64, String> {
        let count = match self {
            Self::Integer(number) => u64::try_from(*number).ok(),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        };
        count.ok_or_else(|| "must be a whole number, at least 0".into())
    }

    /// An amount of money.
    pub(crate) fn amount(&self) -> Result<f64, String> {
        let amount = match self {
            // Amounts are far too small for this conversion to round them.
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            _ => None,
        };
        let amount = amount.filter(|amount| amount.is_finite() && *amount >= 0.0);
        amount.ok_or_else(|| "must be a number, at least 0, in US dollars".into())
    }

    /// A duration such as `30m` or `1h30m`.
    pub(crate) fn duration(&self) -> Result<Duration, String> {
        match self {
            Self::Text(text) => parse_duration(text),
            Self::Integer(0) => Ok(Duration::ZERO),
            _ => Err("must be a duration such as \"30m\" or \"1h30m\"".into()),
        }
    }

    /// A size in bytes such as `16MiB`.
    pub(crate) fn size(&self) -> Result<usize, String> {
        let wrong = || "must be a size such as \"16MiB\" or \"64KiB\"".to_owned();
        match self {
            Self::Integer(bytes) => usize::try_from(*bytes).map_err(|_| wrong()),
            Self::Text(text) => {
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                let (number, unit) = text.split_at(digits);
                let scale = match unit.trim() {
                    "" | "B" => 1,
                    "KiB" => 1 << 10,
                    "MiB" => 1 << 20,
                    "GiB" => 1 << 30,
                    _ => return Err(wrong()),
                };
                number.parse::<usize>().ok().and_then(|n| n.checked_mul(scale)).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

/// Parses a duration; `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is not a duration such as 30m, 1h30m or 7d"))
}

/// One day: the shortest retention of unused sessions, so that a wrong unit does not delete today's work.
const ONE_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Validates the retention of unused sessions.
pub fn validate_retention(duration: Duration) -> Result<Duration, String> {
    if duration < ONE_DAY {
        return Err("must be at least one day, such as \"30d\"".into());
    }
    Ok(duration)
}

/// Formats such a duration: `30d`, or with other units if it is not a number of whole days.
#[must_use]
pub fn format_days(duration: Duration) -> String {
    let day = ONE_DAY.as_secs();
    if duration.subsec_nanos() == 0 && duration.as_secs().is_multiple_of(day) {
        return format!("{}d", duration.as_secs() / day);
    }
    humantime::format_duration(duration).to_string().replace(' ', "")
}

/// Parses an idle timeout; 0 disables it.
pub(crate) fn parse_idle_timeout(text: &str) -> Result<Option<Duration>, String> {
    Ok(Some(parse_duration(text)?).filter(|timeout| !timeout.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations() {
        assert_eq!(RawConfigValue::Text("16MiB".into()).size(), Ok(16 << 20));
        assert_eq!(RawConfigValue::Integer(512).size(), Ok(512));
        assert!(RawConfigValue::Text("16MB".into()).size().is_err());
        assert!(RawConfigValue::Text("99999999999GiB".into()).size().is_err());
        assert_eq!(RawConfigValue::Integer(3).amount(), Ok(3.0));
        assert_eq!(RawConfigValue::Text("0.25".into()).amount(), Ok(0.25));
        assert!(RawConfigValue::Float(-1.0).amount().is_err() && RawConfigValue::Text("nan".into()).amount().is_err());
        assert_eq!(parse_idle_timeout("0"), Ok(None));
        assert_eq!(parse_idle_timeout("1h30m"), Ok(Some(Duration::from_secs(5400))));
        assert!(parse_idle_timeout("soon").is_err());
    }
}
