//! Memories as files.
