//! The contract of a backend, as tests: every sentence of [`quipu_core::backend`]'s docs.
//!
//! A backend's crate writes a function `open` that returns a [`Fixture`] with an empty backend,
//! and `quipu_testkit::conformance_tests!(open);`.

pub mod agents;
pub mod changes;
mod fixture;
pub mod forgetting;
pub mod keys;
pub mod past;
pub mod reading;
pub mod sessions;
pub mod transactions;
pub mod upkeep;
pub mod writing;

pub use fixture::{Fixture, Rows};

/// Makes a test of each function of the suite. `$open` returns a [`Fixture`] with an empty
/// backend.
#[macro_export]
macro_rules! conformance_tests {
    ($open:ident) => {
        $crate::conformance_tests!(@module $open, transactions:
            a_snapshot_holds_every_write_that_has_returned,
            nothing_that_happens_during_a_read_changes_its_snapshot,
            an_error_of_a_read_is_returned_as_it_is,
            a_failed_write_changes_nothing_and_returns_its_error,
            a_write_that_panics_changes_nothing,
            a_write_reads_its_own_changes,
            writes_do_not_overlap,
            a_write_is_seen_through_every_handle,
            writers_of_many_handles_lose_no_update,
            waiting_returns_at_once_when_there_is_a_change_already,
            waiting_ends_with_its_timeout,
            waiting_ends_with_a_change_of_the_same_handle,
            waiting_ends_with_a_change_of_another_handle,
            a_watch_is_called_after_commits_without_a_change,
            a_watch_ends_with_its_timeout_or_an_error,
            reading_without_waiting_is_never_stale,
            reading_ahead_changes_no_answer,
            stamps_of_one_transaction_follow_each_other,
            a_stamp_of_a_failed_write_is_given_out_again,
            no_two_writers_get_the_same_stamp,
            a_closed_handle_fails_and_others_do_not,
            closing_ends_a_wait,
        );
        $crate::conformance_tests!(@module $open, reading:
            workspaces_come_oldest_first,
            a_store_is_read_back_as_it_was_put,
            stores_come_newest_first_page_by_page,
            stores_are_selected_by_workspace_archive_and_span,
            an_absent_store_has_nothing,
            a_memory_is_found_by_id_and_by_exact_path_in_its_store_only,
            a_basic_view_leaves_the_text_out,
            overlapping_finds_the_one_at_the_path_then_above_then_below,
            overlapping_leaves_out_the_exception,
            memories_come_in_byte_order_of_their_paths,
            memories_are_selected_by_directory_start_and_limit,
            unused_memories_were_neither_written_nor_touched,
            use_is_noted_only_in_stores_that_expire,
            versions_come_newest_first_page_by_page,
            versions_are_selected_by_everything_in_the_filter,
            a_version_is_read_from_its_store_only,
            sessions_are_read_back_and_found_by_token,
            sessions_come_in_both_orders_and_are_selected,
            keys_are_read_back_and_found_by_secret,
        );
        $crate::conformance_tests!(@module $open, changes:
            changes_come_in_order_after_a_sequence,
            a_change_is_read_back_with_its_transaction,
            stamps_follow_the_newest_change,
            the_oldest_change_and_the_last_of_a_store_are_known,
            cursors_are_kept_under_their_names,
        );
        $crate::conformance_tests!(@module $open, past:
            the_past_has_the_newest_version_of_each_memory,
            redacted_versions_are_part_of_the_past,
            pruning_raises_the_horizon,
        );
        $crate::conformance_tests!(@module $open, forgetting:
            a_tombstone_is_kept_once_and_removed_with_its_store,
            receipts_are_read_back_and_come_newest_first,
            a_receipt_without_a_proof_is_found_until_it_has_one,
            copies_made_are_bounded_and_come_oldest_first,
            a_refusal_can_be_removed,
            an_erasure_can_be_required,
        );
        $crate::conformance_tests!(@module $open, writing:
            putting_again_replaces,
            a_commit_moves_the_memory_and_adds_the_version,
            a_commit_feeds_the_change_and_the_usage,
            a_deletion_removes_the_memory_and_keeps_its_versions,
            removing_a_store_removes_its_rows,
            a_deleted_store_is_hidden_until_it_is_restored,
            a_deleted_store_can_be_removed,
            refusals_are_bounded_and_removed_with_a_redaction,
            a_removed_store_leaves_keys_but_stays_on_record_in_sessions,
            redaction_takes_out_path_text_hash_and_size,
            pruning_follows_its_rule,
            the_feed_is_trimmed_but_not_its_newest_change,
            what_a_rule_gives_up_is_found_page_by_page,
            pruning_looks_again,
            a_removed_session_is_gone_and_stays_an_actor,
        );
        $crate::conformance_tests!(@module $open, sessions:
            a_viewer_selects_the_sessions_that_it_sees,
            sessions_are_counted_by_workspace,
            a_key_is_known_by_the_sessions_that_it_ever_owned,
            a_removed_store_still_has_a_workspace,
            ended_sessions_that_no_version_names_are_pruned,
        );
        $crate::conformance_tests!(@module $open, keys:
            derived_keys_are_read_back_as_they_were_put,
            derived_keys_are_found_by_their_parent,
            sessions_of_a_derived_key_belong_to_its_parent,
            ended_derived_keys_are_pruned,
            a_one_time_key_is_redeemed_once,
        );
        $crate::conformance_tests!(@module $open, agents:
            a_definition_is_read_back_in_all_of_its_versions,
            definitions_come_newest_first_and_are_selected,
            a_removed_definition_is_gone_in_all_of_its_versions,
            events_are_read_back_and_selected_in_both_orders,
            an_absent_session_has_no_events,
            a_redacted_event_keeps_its_number_and_loses_its_body,
            old_events_are_pruned_and_their_numbers_are_not_reused,
            events_are_removed_with_their_session,
            rebuilding_keeps_the_usage_of_sessions_right,
        );
        $crate::conformance_tests!(@module $open, upkeep:
            a_sound_backend_has_nothing_to_report,
            rebuilding_keeps_the_usage_right,
            erasing_can_be_repeated_and_keeps_what_is_there,
            an_erasure_is_pending_until_it_is_done,
            the_condition_counts_rows_and_bytes,
            compacting_changes_no_row,
        );
    };
    (@module $open:ident, $module:ident: $($name:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $name() {
                    $crate::conformance::$module::$name(&super::$open());
                }
            )*
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_function_of_the_suite_is_in_the_macro() {
        let list = include_str!("conformance.rs");
        let sources = [
            include_str!("conformance/agents.rs"),
            include_str!("conformance/transactions.rs"),
            include_str!("conformance/forgetting.rs"),
            include_str!("conformance/keys.rs"),
            include_str!("conformance/past.rs"),
            include_str!("conformance/reading.rs"),
            include_str!("conformance/sessions.rs"),
            include_str!("conformance/writing.rs"),
            include_str!("conformance/upkeep.rs"),
        ];
        for name in sources.iter().flat_map(|source| source.split("\npub fn ").skip(1)) {
            let name = name.split('(').next().expect("a function has a name");
            assert!(list.contains(&format!("            {name},\n")), "`{name}` is not listed");
        }
    }
}
