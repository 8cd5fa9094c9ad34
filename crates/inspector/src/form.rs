//! The pairs of a query string or of a submitted form.

/// Pairs of names and values, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub struct Form(Vec<(String, String)>);

impl Form {
    /// Parses `a=1&b=2`. Any bytes are a form: what is not UTF-8 is replaced.
    pub fn parse(encoded: &[u8]) -> Self {
        Self(form_urlencoded::parse(encoded).into_owned().collect())
    }

    /// Returns the first value of a name. A field that was left empty is absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns the first value of a name, which may be empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a name that are not empty.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        let named = self.0.iter().filter(move |(key, _)| key == name);
        named.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns all pairs.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Returns an address with a query. Pairs without a value are left out.
pub(crate) fn address(path: &str, pairs: &[(&str, impl AsRef<str>)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.as_ref().is_empty()));
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_is_absent_unless_its_text_is_asked_for() {
        let form = Form::parse(b"text=&path=%2Fa+b.md&tag=x&tag=&tag=y");
        assert_eq!((form.get("text"), form.text("text")), (None, Some("")));
        assert_eq!(form.get("path"), Some("/a b.md"));
        assert_eq!(form.all("tag").collect::<Vec<_>>(), ["x", "y"]);
    }

    #[test]
    fn an_address_can_be_read_back() {
        let hostile = "a&b=\"<c> d#?é";
        let address = address("/ui/search", &[("q", hostile), ("empty", "")]);
        let (path, query) = address.split_once('?').unwrap();
        assert_eq!((path, Form::parse(query.as_bytes()).get("q")), ("/ui/search", Some(hostile)));
        assert!(!address.contains(['"', '<', ' ', '#']), "{address}");
    }
}
