//! The table `[search]`.

use std::str::FromStr;

/// The settings of the search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchConfig {
    /// False: there is no index, and nothing can be searched.
    pub index: bool,
    /// True if the results of tools are indexed.
    pub index_tool_results: bool,
    pub language: SearchLanguage,
}

impl Default for SearchConfig {
    fn default() -> Self {
        Self { index: true, index_tool_results: false, language: SearchLanguage::default() }
    }
}

/// Languages whose word endings can be ignored.
const LANGUAGES: [&str; 18] = [
    "arabic",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "greek",
    "hungarian",
    "italian",
    "norwegian",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
];

const NO_LANGUAGE: &str = "none";

/// The language of most conversations; `none` if no word endings are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLanguage(&'static str);

impl SearchLanguage {
    /// Returns the name in English and lower case, or `none`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl Default for SearchLanguage {
    fn default() -> Self {
        Self("english")
    }
}

impl FromStr for SearchLanguage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = LANGUAGES.into_iter().chain([NO_LANGUAGE]).find(|known| known.eq_ignore_ascii_case(text.trim()));
        known.map(Self).ok_or_else(|| format!("must be {NO_LANGUAGE} or one of: {}", LANGUAGES.join(", ")))
    }
}
