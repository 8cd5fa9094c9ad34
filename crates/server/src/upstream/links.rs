//! Links in answers: the SDKs fetch the results of a batch from the address that the batch names, with
//! the key that they have. That key is ours, so the address must be ours, too.

const FIELD: &str = "\"results_url\"";
const PATH: &str = "/v1/messages/batches/";

/// Returns whether answers to requests for this path have such links.
pub(super) fn has_links(path: &str) -> bool {
    let rest = path.strip_prefix("/v1/messages/batches");
    rest.is_some_and(|rest| {
        (rest.is_empty() || rest.starts_with('/')) && !rest.ends_with("/results")
    })
}

/// Returns the text with links to the results of batches that lead to `own`. Batches contain no text of
/// their makers, so whatever looks like such a link is one. One that cannot be understood is removed.
pub(super) fn relinked(text: &str, own: &str) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(FIELD) {
        done.push_str(before);
        done.push_str(FIELD);
        rest = after;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let Some(value) = value.and_then(|value| value.strip_prefix('"')) else { continue };
        let Some((url, after)) = value.split_once('"') else { continue };
        // A slash may be written behind a backslash.
        let url = url.replace("\\/", "/");
        let path = url.find(PATH).and_then(|start| url.get(start..));
        done.push_str(&path.map_or(":null".to_owned(), |path| format!(":\"{own}{path}\"")));
        rest = after;
    }
    done + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_fetched_here() {
        let own = "http://localhost:8420";
        for (text, expected) in [
            (
                r#"{"id":"x","results_url": "https://api.example.org/v1/messages/batches/x/results","type":"t"}"#,
                r#"{"id":"x","results_url":"http://localhost:8420/v1/messages/batches/x/results","type":"t"}"#,
            ),
            (
                r#"{"results_url":"https:\/\/api.example.org\/v1\/messages\/batches\/x\/results"}"#,
                r#"{"results_url":"http://localhost:8420/v1/messages/batches/x/results"}"#,
            ),
            (r#"{"results_url": null}"#, r#"{"results_url": null}"#),
            (r#"{"results_url":"https://elsewhere.example.org/x"}"#, r#"{"results_url":null}"#),
            (
                r#"[{"results_url":"a/v1/messages/batches/1/results"},{"results_url":"b/v1/messages/batches/2/results"}]"#,
                r#"[{"results_url":"http://localhost:8420/v1/messages/batches/1/results"},{"results_url":"http://localhost:8420/v1/messages/batches/2/results"}]"#,
            ),
            ("", ""),
            (r#"{"results_url":"#, r#"{"results_url":"#),
        ] {
            assert_eq!(relinked(text, own), expected);
        }
    }

    #[test]
    fn only_batches_have_links() {
        for path in
            ["/v1/messages/batches", "/v1/messages/batches/x", "/v1/messages/batches/x/cancel"]
        {
            assert!(has_links(path), "{path}");
        }
        for path in ["/v1/messages", "/v1/messages/batches/x/results", "/v1/messages/batchesx"] {
            assert!(!has_links(path), "{path}");
        }
    }
}
