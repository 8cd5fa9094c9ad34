//! Who may see and do what, for every page.
