//! TODO

use crate::Page;

/// The pages of this module.
pub(crate) static PAGES: [Page; 0] = [];
