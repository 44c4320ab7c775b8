//! How every store behaves: one suite, run on each of them. A new store is one more module in the macro.

mod changes;
mod fixtures;
mod histories;
mod lists;
mod oracle;
mod recordings;
mod registry;
mod rows;
mod tenants;

/// Makes a test of every behaviour for each store.
macro_rules! suite {
    ($($topic:ident: $($behaviour:ident),+;)+) => {
        mod memory {
            $($(
                #[tokio::test]
                async fn $behaviour() {
                    super::$topic::$behaviour(&crate::store::memory::Memory::new()).await;
                }
            )+)+
        }

        mod sqlite {
            $($(
                #[tokio::test]
                async fn $behaviour() {
                    let directory = tempfile::tempdir().unwrap();
                    let options = crate::store::sqlite::Options::new(directory.path().join("test.db"));
                    super::$topic::$behaviour(&crate::store::sqlite::Store::open(options).unwrap()).await;
                }
            )+)+
        }
    };
}

pub(super) use fixtures::*;

suite! {
    changes:
        a_stale_seq_loses_alone,
        a_retry_after_a_lost_answer_loses_its_own_race,
        a_new_run_follows_the_last_one,
        gaps_are_refused_whole,
        nothing_is_a_batch_too,
        a_terminal_change_removes_rows,
        answers_are_kept_until_they_expire,
        log_lines_are_numbered_by_run,
        writes_after_close_are_refused;
    histories:
        loads_come_in_the_order_asked,
        an_unreadable_execution_is_loaded_apart,
        a_history_is_read_in_parts,
        a_history_part_is_bounded_in_bytes,
        payloads_are_kept_byte_for_byte;
    lists:
        filters_are_joined,
        labels_of_an_earlier_run_find_nothing,
        pages_show_each_old_row_once,
        tenants_see_only_their_own;
    registry:
        the_first_document_of_a_version_stays,
        a_dropped_default_is_no_default,
        documents_are_listed_newest_first,
        a_version_is_in_use_until_its_runs_end,
        module_bytes_are_shared_and_go_with_the_last,
        uploads_keep_their_bytes_until_they_are_modules_or_refused,
        pieces_that_nobody_needs_are_swept,
        modules_and_aliases_are_listed,
        an_alias_remembers_what_it_named,
        what_is_needed_is_not_removed,
        a_live_run_pins_its_digests;
    rows:
        timers_come_earliest_first,
        ready_rows_come_in_both_orders,
        ready_classes_are_told_apart,
        a_put_replaces_the_row_of_its_unit,
        an_unreadable_input_is_listed_apart,
        notes_stick_to_their_attempt,
        redelivery_is_marked_on_all,
        ends_in_a_queue_come_earliest_first,
        the_sweep_sees_every_active_execution,
        turns_are_found_while_unfinished,
        runs_that_wind_down_are_found_while_they_have_work;
    tenants:
        a_tenant_is_made_once_and_listed,
        a_policy_replaces_the_one_before,
        every_revision_of_settings_is_kept_and_the_newest_counts;
    recordings:
        an_attempt_that_is_recorded_again_replaces_the_one_before,
        the_newest_recordings_of_a_tenant_are_kept;
}
