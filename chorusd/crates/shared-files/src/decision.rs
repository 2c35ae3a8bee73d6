//! Decides about a file, by its content here, its row, and the content that both had when they were compared last.

/// A file on this machine. Contents are named by their hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Here<'a> {
    Missing,
    Content(&'a str),
    /// It is there, and cannot be a row: it is too large, or a link.
    Unusable,
}

/// The decision about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is the same here and there.
    Same,
    /// It is nowhere.
    Gone,
    /// The file becomes the row.
    Send,
    /// The row is deleted.
    DeleteRow,
    /// The row becomes the file.
    Fetch,
    /// The file is deleted.
    DeleteFile,
    /// The file gets another name, and the row becomes the file.
    FetchBeside,
    /// The file gets another name: its row was deleted.
    SetAside,
    /// Nothing, because what is here cannot be a row.
    Refuse,
}

/// Decides about a file. `known` is what was the same here and in the row; `may_delete` says that a file which is missing was
/// deleted by somebody who may do that.
pub(crate) fn decide(known: Option<&str>, here: Here<'_>, row: Option<&str>, may_delete: bool) -> Decision {
    match (here, row) {
        (Here::Missing, None) => Decision::Gone,
        (Here::Missing, Some(_)) if may_delete && known == row => Decision::DeleteRow,
        (Here::Missing, Some(_)) => Decision::Fetch,
        (Here::Content(here), Some(row)) if here == row => Decision::Same,
        (Here::Content(here), Some(_)) if known == Some(here) => Decision::Fetch,
        (Here::Content(_), Some(_)) if known == row => Decision::Send,
        (Here::Unusable, Some(_)) if known == row => Decision::Refuse,
        (_, Some(_)) => Decision::FetchBeside,
        (Here::Content(_), None) if known.is_none() => Decision::Send,
        (Here::Content(here), None) if known == Some(here) => Decision::DeleteFile,
        (Here::Content(_), None) => Decision::SetAside,
        (Here::Unusable, None) => Decision::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASHES: [Option<&str>; 4] = [None, Some("1"), Some("2"), Some("3")];

    fn here(hash: Option<&str>) -> Here<'_> {
        hash.map_or(Here::Missing, Here::Content)
    }

    #[test]
    fn a_file_that_only_one_side_has_changed_goes_to_the_other() {
        let old = Some("1");
        assert_eq!(decide(old, here(old), old, true), Decision::Same);
        assert_eq!(decide(old, here(Some("2")), old, true), Decision::Send);
        assert_eq!(decide(old, here(old), Some("2"), true), Decision::Fetch);
        assert_eq!(decide(old, here(old), None, true), Decision::DeleteFile);
        assert_eq!(decide(old, Here::Missing, old, true), Decision::DeleteRow);
        assert_eq!(decide(old, Here::Missing, old, false), Decision::Fetch);
        assert_eq!(decide(None, here(Some("2")), None, false), Decision::Send);
    }

    #[test]
    fn what_somebody_wrote_is_never_overwritten_or_deleted() {
        for known in HASHES {
            for content in HASHES.into_iter().flatten() {
                for row in HASHES {
                    let decision = decide(known, Here::Content(content), row, true);
                    if matches!(decision, Decision::Fetch | Decision::DeleteFile) {
                        assert_eq!(known, Some(content), "it was a row before");
                    }
                }
            }
            for row in HASHES {
                let decision = decide(known, Here::Unusable, row, true);
                assert!(matches!(decision, Decision::Refuse | Decision::FetchBeside), "{decision:?}");
            }
        }
    }

    #[test]
    fn what_another_node_wrote_is_never_overwritten_or_deleted() {
        for known in HASHES {
            for row in HASHES.into_iter().flatten() {
                for content in HASHES {
                    let decision = decide(known, here(content), Some(row), true);
                    if matches!(decision, Decision::Send | Decision::DeleteRow) {
                        assert_eq!(known, Some(row), "it was here before");
                    }
                }
            }
        }
    }
}
