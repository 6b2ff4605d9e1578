//! The list of contracts. Each becomes a test of the store that runs the suite.

/// Creates a test of every contract, for the store of this [`Harness`](crate::Harness).
#[macro_export]
macro_rules! conformance {
    ($harness:ident) => {
        $crate::conformance! {
            @ $harness
            commits {
                what_was_committed_is_there_after_a_restart,
                what_was_committed_survives_a_crash,
                messages_keep_every_byte,
                history_has_prompts_and_messages_by_page,
                a_session_never_gets_what_belongs_to_its_neighbours,
                a_replay_is_gapless_and_in_order,
                a_commit_is_all_or_nothing_and_hurts_no_other,
                commits_of_one_session_keep_their_order_under_load,
                readers_find_whole_commits_while_others_write,
                messages_that_look_like_our_records_come_back_unchanged,
                a_line_that_is_not_a_message_is_kept_whole,
                totals_are_stored_with_their_commit,
                what_ran_instead_of_what_was_asked_for_is_known,
            }
            whole_sessions {
                sessions_come_newest_first_and_go_with_all_that_is_theirs,
                a_name_belongs_to_its_owner_and_goes_away_with_its_session,
                an_image_is_kept_once_and_goes_with_its_session,
                a_fork_begins_with_the_messages_of_its_source,
                a_fork_has_no_more_of_its_source_than_is_wanted,
                notes_are_kept_with_their_session_and_go_with_it,
                others_go_on_while_a_long_session_is_copied_and_removed,
            }
            fencing {
                a_stale_owner_writes_nothing_and_hurts_no_other,
            }
            listing {
                sessions_are_listed_by_page,
                a_list_has_own_listed_and_folders_sessions,
                missing_totals_are_stored_once_and_change_nothing_else,
                only_sessions_that_need_someone_are_unfinished_or_due,
            }
            arrangement {
                an_arrangement_is_its_viewers_alone_and_there_after_a_restart,
                what_was_chosen_goes_with_its_session_and_its_group,
                a_list_finds_what_waits_runs_or_was_arranged,
            }
            prompts {
                an_id_is_accepted_once_for_each_owner,
                one_of_two_that_accept_an_id_at_once_is_refused_and_no_other,
                an_id_is_known_for_as_long_as_its_session,
            }
            compaction {
                streamed_pieces_go_and_everything_else_stays_with_its_number,
                pieces_of_a_message_that_was_never_finished_stay,
                a_deeply_nested_message_does_not_keep_others_from_being_compacted,
            }
            credentials {
                a_code_is_good_once_and_for_a_while,
                a_sign_in_ends_a_week_after_its_last_use_or_when_it_is_told_to,
                an_instance_keeps_its_id,
                keys_are_found_by_their_hash_until_they_are_revoked,
                sessions_of_a_revoked_key_are_kept_by_choice,
            }
            audit {
                what_happens_to_credentials_is_in_the_log,
                a_decision_is_in_the_log_with_its_commit,
                the_log_is_read_by_page_and_survives,
            }
        }
    };
    (@ $harness:ident $($group:ident { $($contract:ident,)+ })+) => {
        $(
            mod $group {
                use super::*;

                $(
                    #[test]
                    fn $contract() {
                        let harness = <$harness as $crate::Harness>::new();
                        $crate::run($crate::contracts::$group::$contract(&harness));
                    }
                )+
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    /// A contract that no store checks would look like one that every store fulfils.
    #[test]
    fn every_contract_is_in_the_list() {
        let list = include_str!("contracts_list.rs");
        for source in [
            include_str!("contracts/commits.rs"),
            include_str!("contracts/whole_sessions.rs"),
            include_str!("contracts/fencing.rs"),
            include_str!("contracts/listing.rs"),
            include_str!("contracts/arrangement.rs"),
            include_str!("contracts/prompts.rs"),
            include_str!("contracts/compaction.rs"),
            include_str!("contracts/credentials.rs"),
            include_str!("contracts/audit.rs"),
        ] {
            let contracts: Vec<_> = source
                .lines()
                .filter_map(|line| line.strip_suffix("<H: Harness>(harness: &H) {"))
                .filter_map(|line| line.strip_prefix("pub async fn "))
                .collect();
            assert!(!contracts.is_empty());
            for contract in contracts {
                assert!(
                    list.contains(&format!("{contract},")),
                    "{contract} is not in the list"
                );
            }
        }
    }
}
