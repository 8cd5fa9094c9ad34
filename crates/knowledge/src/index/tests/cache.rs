use std::sync::Arc;

use super::super::cache::Cache;
use super::super::segment::{Segment, SegmentBuilder};
use super::{Text, documents};

fn column(size: usize) -> Arc<[u8]> {
    vec![7; size].into()
}

/// A segment with about this many bytes of paths.
fn segment(size: usize) -> Arc<Segment> {
    let mut builder = SegmentBuilder::default();
    let mut documents = documents(1, &Text::of("tea"));
    documents.row.path = "x".repeat(size);
    builder.add(documents);
    Arc::new(builder.finish())
}

const MEGABYTE: usize = 1024 * 1024;

#[test]
fn columns_are_kept_by_segment_and_name() {
    let cache = Cache::default();
    cache.keep_column(1, "memory_ids", &column(5_000));
    assert_eq!(cache.column(1, "memory_ids").map(|it| it.len()), Some(5_000));
    assert!(cache.column(1, "memory_times").is_none());
    assert!(cache.column(2, "memory_ids").is_none());
    assert!(cache.segment(1).is_none());
}

/// A short column is read as fast as it would be found.
#[test]
fn short_columns_are_not_kept() {
    let cache = Cache::default();
    cache.keep_column(1, "memory_ids", &column(4 * 1024 - 1));
    assert!(cache.column(1, "memory_ids").is_none());
    cache.keep_column(1, "memory_ids", &column(4 * 1024));
    assert!(cache.column(1, "memory_ids").is_some());
}

/// What would fill half of the cache is not worth the rest.
#[test]
fn what_is_too_large_is_not_kept_and_displaces_nothing() {
    let cache = Cache::default();
    cache.keep_column(1, "memory_ids", &column(5_000));
    cache.keep_column(2, "memory_ids", &column(2 * MEGABYTE + 1));
    cache.keep_segment(3, &segment(3 * MEGABYTE));
    assert!(cache.column(2, "memory_ids").is_none());
    assert!(cache.segment(3).is_none());
    assert!(cache.column(1, "memory_ids").is_some());
    cache.keep_column(4, "memory_ids", &column(2 * MEGABYTE));
    assert!(cache.column(4, "memory_ids").is_some());
}

/// Columns and segments share the limit of four megabytes.
#[test]
fn the_cache_never_holds_more_than_its_limit() {
    let cache = Cache::default();
    let mut kept_most = 0;
    for id in 0..40 {
        if id % 2 == 0 {
            cache.keep_segment(id, &segment(MEGABYTE / 2));
        } else {
            cache.keep_column(id, "memory_ids", &column(MEGABYTE / 2));
        }
        let is_kept =
            |id: &i64| cache.segment(*id).is_some() || cache.column(*id, "memory_ids").is_some();
        assert!(is_kept(&id), "the newest is always kept");
        kept_most = kept_most.max((0..=id).filter(is_kept).count());
    }
    assert!((4..=8).contains(&kept_most), "{kept_most}");
}
