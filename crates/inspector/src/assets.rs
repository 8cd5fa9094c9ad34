//! The style sheet, the script and the icon, which are part of the binary.
//!
//! Their addresses contain a hash of their content, so that browsers may keep them forever and still
//! get the new ones after an upgrade.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// A file that pages refer to.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Its address.
    pub path: String,
    /// Its media type.
    pub kind: &'static str,
    /// What is in it.
    pub text: &'static str,
}

impl Asset {
    fn new(name: &str, extension: &str, kind: &'static str, text: &'static str) -> Self {
        let hash = hex(Sha256::digest(text).iter().take(8));
        Self { path: format!("/ui/assets/{name}-{hash}.{extension}"), kind, text }
    }

    /// Returns the asset at this address.
    pub fn find(path: &str) -> Option<&'static Self> {
        [&*STYLE, &*SCRIPT, &*ICON].into_iter().find(|asset| asset.path == path)
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    bytes.fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// The parts of the style sheet: what all pages share, then what some need.
const STYLE_TEXT: &str = concat!(
    include_str!("../assets/style.css"),
    include_str!("../assets/style/memory.css"),
    include_str!("../assets/style/store.css"),
    include_str!("../assets/style/sessions.css"),
    include_str!("../assets/style/search.css"),
);

/// The parts of the script.
const SCRIPT_TEXT: &str = concat!(
    include_str!("../assets/script.js"),
    include_str!("../assets/script/memory.js"),
    include_str!("../assets/script/store.js"),
    include_str!("../assets/script/sessions.js"),
    include_str!("../assets/script/search.js"),
);

/// The style sheet.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("style", "css", "text/css; charset=utf-8", STYLE_TEXT));

/// The script module, which makes pages quicker to use; none of them needs it.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let kind = "text/javascript; charset=utf-8";
    Asset::new("script", "js", kind, SCRIPT_TEXT)
});

/// The icon of the site: a cord with three strings and their knots.
pub(crate) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg"))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_is_found_under_its_present_hash_only() {
        assert_eq!(Asset::find(&STYLE.path).map(|asset| asset.text), Some(STYLE.text));
        assert!(Asset::find("/ui/assets/style-0000000000000000.css").is_none());
    }
}
