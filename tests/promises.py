"""The promises: what users may rely on, each with an identifier and the test that keeps it.

An identifier is `<noun>.<what-holds>` and never changes its meaning; docs and change notes may cite it.
Every bug becomes a promise. The test is named by its pytest node id, and
`tests/architecture/test_promises.py` makes sure that it exists.
"""

from __future__ import annotations

from typing import NamedTuple


class Promise(NamedTuple):
    """One sentence about an outcome, and the node id of the test that proves it."""

    sentence: str
    test: str


PROMISES: dict[str, Promise] = {
    "house.imports-point-down": Promise(
        "No module imports from a layer above its own.",
        "tests/architecture/test_import_contracts.py::test_the_tree_keeps_every_import_contract",
    ),
    "house.every-module-says-what-it-is-for": Promise(
        "The module map shows every module, in the words of its own first line.",
        "tests/architecture/test_module_map.py::test_the_map_is_what_the_modules_say",
    ),
    "cli.quick-start": Promise(
        "Importing the command line loads neither the terminal libraries nor any heavy dependency.",
        "tests/architecture/test_startup_budget.py::test_importing_the_command_line_stays_light",
    ),
    "usage.parts-equal-the-total": Promise(
        "What all tasks cost and what belongs to none add up to the grand total exactly, however many "
        "tasks a record is linked to.",
        "tests/usage/test_usage.py::test_many_records_linked_to_many_tasks_add_up_to_the_total",
    ),
    "usage.booked-once": Promise(
        "What comes again under the same key is booked once, also when several book it at the same time.",
        "tests/usage/test_usage.py::test_of_those_who_book_the_same_at_once_one_does",
    ),
    "usage.failures-are-booked": Promise(
        "Every attempt is booked, also one whose keeper was killed: as unknown, or as at least what was "
        "noted of it.",
        "tests/usage/test_usage.py::test_an_attempt_that_ends_without_a_word_is_booked_all_the_same",
    ),
    "usage.unknown-is-not-zero": Promise(
        "A cost that nobody knows is shown as unknown, in no total as zero.",
        "tests/usage/test_usage_model.py::test_unknown_is_never_shown_as_nothing",
    ),
    "usage.budgets-stop": Promise(
        "A worker that uses up its budget is ended, and a person is asked before the task is tried again.",
        "tests/usage/test_usage_cli.py::test_a_worker_that_uses_up_its_budget_is_ended_and_a_person_is_asked",
    ),
    "stats.defined": Promise(
        "Every number of `stats` has one definition, the same in the command and on its page.",
        "tests/architecture/test_metrics_page.py::test_the_page_defines_every_number_as_the_command_does",
    ),
    "claims.overlap-is-refused": Promise(
        "A claim that overlaps another session's is refused, with its holder, the end of its "
        "lease and what to do instead.",
        "tests/claims/test_claims.py::test_an_overlapping_claim_is_refused_with_holder_end_and_hint",
    ),
    "claims.overlap-is-exact": Promise(
        "Whatever could touch the same file, there already or not, is refused, glob against glob included.",
        "tests/claims/test_claims.py::test_what_could_touch_the_same_file_is_refused",
    ),
    "claims.disjoint-work-is-free": Promise(
        "What can never touch the same file is granted to both.",
        "tests/claims/test_claims.py::test_what_can_never_touch_the_same_file_is_granted_to_both",
    ),
    "claims.one-winner": Promise(
        "Of many processes that ask for the same thing in the same instant, exactly one gets it.",
        "tests/claims/test_claim_races.py::test_exactly_one_of_many_processes_gets_what_all_ask_for_at_once",
    ),
    "claims.shared-with-shared": Promise(
        "Many sessions may share what nobody holds alone.",
        "tests/claims/test_claims.py::test_many_may_share_what_nobody_holds_alone",
    ),
    "claims.shared-never-with-exclusive": Promise(
        "What is shared cannot be had alone, and the other way round.",
        "tests/claims/test_claims.py::test_what_is_shared_cannot_be_had_alone",
    ),
    "claims.all-or-nothing": Promise(
        "One held pattern refuses the whole set, and every obstacle is named.",
        "tests/claims/test_claims.py::test_one_held_pattern_refuses_the_whole_set_and_every_obstacle_is_named",
    ),
    "claims.partial-takes-what-is-free": Promise(
        "With `partial`, what is free is granted and the rest refused.",
        "tests/claims/test_claims.py::test_partial_grants_what_is_free_and_refuses_the_rest",
    ),
    "claims.tokens-grow": Promise(
        "Every grant gets a higher token than all before it.",
        "tests/claims/test_claims.py::test_every_grant_gets_a_higher_token_whoever_takes_it",
    ),
    "claims.again-is-renewal": Promise(
        "Claiming again what one holds renews it under the same token.",
        "tests/claims/test_claims.py::test_claiming_again_what_one_holds_renews_it_under_the_same_token",
    ),
    "claims.stale-token-is-refused": Promise(
        "The token of a grant that is over opens nothing.",
        "tests/claims/test_claims.py::test_check_refuses_the_token_of_a_grant_that_is_over",
    ),
    "claims.own-is-not-in-the-way": Promise(
        "What a session holds nearby is not in its own way.",
        "tests/claims/test_claims.py::test_what_a_session_holds_nearby_is_not_in_its_own_way",
    ),
    "claims.release-records-commit": Promise(
        "A release records the commit that the work ended in.",
        "tests/claims/test_claims.py::test_release_records_the_commit_it_ended_in",
    ),
    "claims.release-gives-back-every-grant": Promise(
        "Releasing a pattern gives back every grant on it, in both modes.",
        "tests/claims/test_claims.py::test_releasing_a_pattern_gives_back_every_grant_on_it",
    ),
    "claims.release-names-the-true-holder": Promise(
        "Only who really holds a path is named as its holder.",
        "tests/claims/test_claims.py::test_only_who_really_holds_it_is_named_as_its_holder",
    ),
    "claims.thousand-at-once": Promise(
        "A thousand patterns can be claimed in one call, and no more.",
        "tests/claims/test_claims.py::test_a_thousand_patterns_can_be_claimed_at_once_and_no_more",
    ),
    "claims.literal-brackets": Promise(
        "A literal claim takes brackets in a path as they are.",
        "tests/claims/test_claims.py::test_a_literal_claim_takes_brackets_as_they_are",
    ),
    "claims.model": Promise(
        "Whatever sessions and clocks do, what is held is what a simple model says, and nobody "
        "holds what another holds alone.",
        "tests/claims/test_claims_machine.py::test_sqlite_agrees_with_the_model",
    ),
    "leases.end-frees": Promise(
        "A claim is held until the last moment of its lease and free then.",
        "tests/claims/test_leases.py::test_a_claim_is_held_until_the_last_moment_of_its_lease_and_free_then",
    ),
    "leases.lapse-is-journaled-once": Promise(
        "A lapse is journaled exactly once.",
        "tests/claims/test_leases.py::test_a_lapsed_claim_is_journaled_once",
    ),
    "leases.life-renews-all": Promise(
        "A sign of life renews everything that a session holds.",
        "tests/claims/test_leases.py::test_a_sign_of_life_renews_everything_a_session_holds",
    ),
    "leases.every-act-is-life": Promise(
        "Every act of a session counts as a sign of life.",
        "tests/claims/test_leases.py::test_every_act_counts_as_a_sign_of_life",
    ),
    "leases.ttl-is-a-lower-bound": Promise(
        "A claim keeps its whole lease however long ago its session was last seen.",
        "tests/claims/test_leases.py::test_a_claim_taken_long_after_the_last_sign_of_life_keeps_its_whole_lease",
    ),
    "leases.long-claim-keeps-the-session": Promise(
        "A session lives at least as long as its longest claim.",
        "tests/claims/test_leases.py::test_a_session_with_a_long_claim_lives_as_long_as_the_claim",
    ),
    "leases.late-renewal-is-a-new-grant": Promise(
        "Renewing a lapsed claim that is free is a new grant with a higher token.",
        "tests/claims/test_leases.py::test_renewing_a_lapsed_claim_that_is_free_is_a_new_grant_with_a_higher_token",
    ),
    "leases.late-renewal-yields": Promise(
        "Renewing a lapsed claim that another holds is stale, and the holder is named.",
        "tests/claims/test_leases.py::test_renewing_a_lapsed_claim_that_another_holds_is_stale_and_names_the_holder",
    ),
    "leases.renewals-are-not-overtaken": Promise(
        "A renewal that has begun is not overtaken by the end of the lease.",
        "tests/claims/test_leases.py::test_a_renewal_that_has_begun_is_not_overtaken_by_the_end_of_the_lease",
    ),
    "claims.quick-grants-are-the-same": Promise(
        "A grant that needed no judging is the same as one that was judged, in the store and in the journal.",
        "tests/claims/test_quick_grants.py::test_a_quick_grant_is_the_same_as_one_that_was_judged",
    ),
    "leases.released-is-forgotten": Promise(
        "What was taken again and given back is no lapsed claim any more.",
        "tests/claims/test_leases.py::test_a_lapse_is_forgotten_once_the_claim_was_taken_and_released_again",
    ),
    "leases.sleepers-are-refused": Promise(
        "A sleeper that wakes up after its session is over can do nothing with it.",
        "tests/claims/test_leases.py::test_a_sleeper_that_wakes_up_after_its_session_can_do_nothing",
    ),
    "leases.calendar-does-not-matter": Promise(
        "A jump of the calendar ends no lease and prolongs none.",
        "tests/claims/test_leases.py::test_a_jump_of_the_calendar_ends_no_lease_and_prolongs_none",
    ),
    "leases.restart-keeps-claims": Promise(
        "What was held before a restart of the machine is held after it.",
        "tests/claims/test_leases.py::test_what_was_held_before_a_restart_of_the_machine_is_held_after_it",
    ),
    "leases.the-dead-give-way": Promise(
        "A session whose processes have all died gives way at once.",
        "tests/claims/test_leases.py::test_a_session_whose_processes_have_died_gives_way_at_once",
    ),
    "leases.pids-are-reused": Promise(
        "A pid that was given to another process is not the old one.",
        "tests/claims/test_leases.py::test_a_pid_that_was_given_to_another_process_is_not_the_old_one",
    ),
    "sessions.second-join-attaches": Promise(
        "Joining again attaches to the live session.",
        "tests/sessions/test_sessions.py::test_joining_again_attaches_to_the_live_session",
    ),
    "sessions.generation-grows": Promise(
        "Each new beginning of an agent raises its generation.",
        "tests/sessions/test_sessions.py::test_each_new_beginning_raises_the_generation",
    ),
    "sessions.one-name-one-session": Promise(
        "Processes that join under one name at once are one session.",
        "tests/claims/test_claim_races.py::test_processes_that_join_under_one_name_at_once_are_one_session",
    ),
    "sessions.secret-is-private": Promise(
        "A secret lies where only its user can read it.",
        "tests/sessions/test_sessions.py::test_a_secret_lies_where_only_its_user_can_read_it",
    ),
    "sessions.wrong-secret-proves-nothing": Promise(
        "A wrong secret proves nothing.",
        "tests/sessions/test_sessions.py::test_a_wrong_secret_proves_nothing",
    ),
    "sessions.name-in-use": Promise(
        "A name in use cannot be had without its secret.",
        "tests/sessions/test_sessions.py::test_a_name_in_use_cannot_be_had_without_its_secret",
    ),
    "sessions.nearest-ancestor": Promise(
        "The nearest registered ancestor says who acts, before everything else.",
        "tests/sessions/test_sessions.py::test_the_nearest_registered_ancestor_comes_before_everything",
    ),
    "sessions.no-masks": Promise(
        "A child of a registered process cannot act as somebody else.",
        "tests/sessions/test_sessions.py::test_a_child_of_a_registered_process_cannot_act_as_somebody_else",
    ),
    "sessions.same-pid-is-not-the-same-process": Promise(
        "A process with the same pid but another start is a stranger.",
        "tests/sessions/test_sessions.py::test_a_process_with_the_same_pid_but_another_start_is_a_stranger",
    ),
    "sessions.leaving-frees-all": Promise(
        "Leaving frees everything and tells what.",
        "tests/sessions/test_sessions.py::test_leaving_frees_everything_and_tells_what",
    ),
    "waiting.first-come-first-served": Promise(
        "Who came first is served first.",
        "tests/claims/test_waiting.py::test_who_came_first_is_served_first",
    ),
    "waiting.order-over-sets": Promise(
        "The order holds over sets that overlap only in part.",
        "tests/claims/test_waiting.py::test_the_order_holds_over_sets_that_overlap_only_in_part",
    ),
    "waiting.newcomers-yield": Promise(
        "A newcomer yields to a waiter whose wish it overlaps.",
        "tests/claims/test_waiting.py::test_a_newcomer_yields_to_a_waiter_whose_wish_it_overlaps",
    ),
    "waiting.others-pass": Promise(
        "A newcomer that overlaps nobody in the line does not wait.",
        "tests/claims/test_waiting.py::test_a_newcomer_beside_the_line_does_not_wait",
    ),
    "waiting.woken-by-release": Promise(
        "A waiter is woken when what it wants is given back.",
        "tests/claims/test_waiting.py::test_a_waiter_is_woken_when_what_it_wants_is_given_back",
    ),
    "waiting.the-killed-are-passed-over": Promise(
        "A killed waiter is passed over after three seconds.",
        "tests/claims/test_waiting.py::test_a_killed_waiter_is_passed_over_after_three_seconds",
    ),
    "waiting.killed-holders-give-way": Promise(
        "A waiter gets what a killed process held, also if it was killed during the wait.",
        "tests/claims/test_waiting.py::test_a_waiter_gets_what_a_killed_process_held",
    ),
    "waiting.rings-are-refused": Promise(
        "Those who would wait for each other for ever are told at once, by name.",
        "tests/claims/test_waiting.py::test_two_who_would_wait_for_each_other_are_told_at_once",
    ),
    "waiting.every-wait-ends": Promise(
        "A wait ends when its time is up, and leaves no trace.",
        "tests/claims/test_waiting.py::test_a_wait_ends_when_its_time_is_up",
    ),
    "waiting.is-a-sign-of-life": Promise(
        "Waiting is a sign of life for all that the waiter holds.",
        "tests/claims/test_waiting.py::test_waiting_is_a_sign_of_life",
    ),
    "waiting.the-forgotten-push-nobody-out": Promise(
        "A waiter that was forgotten stands in line again and pushes nobody out.",
        "tests/claims/test_waiting.py::test_a_waiter_that_was_forgotten_stands_in_line_again_and_pushes_nobody_out",
    ),
    "waiting.no-busy-waiting": Promise(
        "A waiter sleeps on when the lease in its way was renewed.",
        "tests/claims/test_waiting.py::test_a_waiter_sleeps_on_when_the_lease_in_its_way_was_renewed",
    ),
    "waiting.no-ghosts-after-a-restart": Promise(
        "Nobody waits in line over a restart of the machine.",
        "tests/claims/test_waiting.py::test_nobody_waits_in_line_over_a_restart_of_the_machine",
    ),
    "journal.one-entry-per-change": Promise(
        "Each change has one entry, and what changes nothing has none.",
        "tests/journal/test_journal.py::test_each_change_has_one_entry",
    ),
    "journal.edits-show": Promise(
        "An edited entry shows.",
        "tests/journal/test_journal.py::test_an_edited_entry_shows",
    ),
    "journal.cuts-show": Promise(
        "An entry cut out of the middle shows.",
        "tests/journal/test_journal.py::test_an_entry_cut_out_of_the_middle_shows",
    ),
    "journal.tail-cuts-show": Promise(
        "A tail cut off shows against the file.",
        "tests/journal/test_journal.py::test_a_tail_cut_off_shows_against_the_file",
    ),
    "journal.accidents-are-refused": Promise(
        "The database itself refuses an accidental edit of the journal.",
        "tests/journal/test_journal.py::test_an_accidental_edit_is_refused_by_the_database",
    ),
    "journal.followers-miss-nothing": Promise(
        "Followers miss nothing while several processes write.",
        "tests/journal/test_journal.py::test_followers_miss_nothing_while_several_processes_write",
    ),
    "journal.followers-are-woken": Promise(
        "A follower is woken by what another process writes.",
        "tests/journal/test_journal.py::test_a_follower_is_woken_by_what_another_process_writes",
    ),
    "journal.file-is-never-ahead": Promise(
        "What was rolled back never appears in journal.jsonl.",
        "tests/store/test_mirror.py::test_what_was_rolled_back_never_appears_in_the_file",
    ),
    "journal.torn-lines-are-mended": Promise(
        "A torn last line of journal.jsonl is cut off and written again.",
        "tests/store/test_mirror.py::test_a_torn_last_line_is_cut_off_and_written_again",
    ),
    "journal.missing-lines-are-caught-up": Promise(
        "Missing lines of journal.jsonl are caught up.",
        "tests/store/test_mirror.py::test_missing_lines_are_caught_up",
    ),
    "journal.each-line-once": Promise(
        "Many who copy at once, processes or threads, write each line once.",
        "tests/store/test_mirror.py::test_threads_that_share_a_house_write_each_line_once",
    ),
    "journal.in-git": Promise(
        "With `[journal] git = true` the journal is committed to a ref of its own, which the check compares.",
        "tests/store/test_mirror.py::test_the_journal_is_committed_to_a_ref_of_its_own",
    ),
    "journal.any-text": Promise(
        "Any text of a note survives the way through the journal's file and git.",
        "tests/store/test_mirror.py::test_any_text_survives_the_way_through_git",
    ),
    "journal.claims-file": Promise(
        "claims.json equals what is held.",
        "tests/store/test_mirror.py::test_the_file_of_claims_equals_what_is_held",
    ),
    "store.newer-is-refused": Promise(
        "A store of a newer program is refused politely and left as it is.",
        "tests/store/test_store.py::test_a_store_of_a_newer_program_is_refused_politely_and_left_as_it_is",
    ),
    "store.other-versions-are-refused": Promise(
        "A store of any other schema version is refused with the way out, and left as it is.",
        "tests/store/test_schema_version.py::test_a_store_of_another_number_is_refused_and_left_as_it_is",
    ),
    "store.hooks-refuse-other-versions": Promise(
        "No hook allows an edit or a commit because of a store of another version or program.",
        "tests/hooks/test_hooks.py::test_any_trouble_is_a_refusal_and_looking_goes_on",
    ),
    "store.created-whole": Promise(
        "A crash while a store is created leaves nothing half done.",
        "tests/store/test_schema_version.py::test_a_crash_while_the_store_is_created_leaves_nothing_half_done",
    ),
    "store.foreign-is-left-alone": Promise(
        "A database of another program is left alone.",
        "tests/store/test_store.py::test_a_database_of_another_program_is_left_alone",
    ),
    "store.damage-is-named": Promise(
        "A damaged file is called damaged and left alone.",
        "tests/store/test_store.py::test_a_file_of_rubbish_is_called_damaged_and_left_alone",
    ),
    "store.loss-is-noticed": Promise(
        "A store that is lost while its journal is there is not begun anew.",
        "tests/store/test_store.py::test_a_store_that_is_lost_while_its_journal_is_there_is_not_begun_anew",
    ),
    "store.busy-has-an-end": Promise(
        "A store that stays locked is given up after the wait of the settings.",
        "tests/store/test_store.py::test_a_store_that_stays_locked_is_given_up_after_the_wait_of_the_settings",
    ),
    "store.made-once": Promise(
        "A store is made once however many open it first.",
        "tests/store/test_store.py::test_a_store_is_made_once_however_many_open_it_first",
    ),
    "store.forks": Promise(
        "A forked child and its parent may both use the store.",
        "tests/store/test_store.py::test_a_forked_child_and_its_parent_may_both_use_the_store",
    ),
    "store.forks-keep-no-lock": Promise(
        "A child forked in the middle of a change does not keep the lock.",
        "tests/store/test_store.py::test_a_child_forked_in_the_middle_of_a_change_does_not_keep_the_lock",
    ),
    "store.threads": Promise(
        "Threads may share one store.",
        "tests/store/test_store.py::test_threads_may_share_one_store",
    ),
    "store.closes-everything": Promise(
        "Closing lets go of every file.",
        "tests/store/test_store.py::test_closing_lets_go_of_every_file",
    ),
    "store.restored-tokens": Promise(
        "A store from a backup gives out no token twice.",
        "tests/app/test_repositories.py::test_a_store_from_a_backup_gives_out_no_token_twice",
    ),
    "repository.id-may-change": Promise(
        "Everything follows the repository to an id in the settings.",
        "tests/app/test_repositories.py::test_everything_follows_the_repository_to_an_id_in_the_settings",
    ),
    "repository.case-may-change": Promise(
        "The settings may change how paths are compared, and every claim follows.",
        "tests/app/test_repositories.py::test_the_settings_may_change_how_paths_are_compared",
    ),
    "repository.stores-are-shared": Promise(
        "Two repositories in one store know nothing of each other.",
        "tests/sessions/test_sessions.py::test_two_repositories_in_one_store_know_nothing_of_each_other",
    ),
    "settings.mistakes-are-named": Promise(
        "An unknown key in the settings is refused with the nearest known one.",
        "tests/settings/test_settings.py::test_an_unknown_key_is_refused_with_the_nearest_known_one",
    ),
    "state.no-update-is-lost": Promise(
        "Of many appends in the same instant, every one survives.",
        "tests/state/test_state.py::test_no_append_of_a_crowd_is_lost",
    ),
    "state.never-overwritten-by-accident": Promise(
        "A key that somebody wrote is not overwritten by one who has not seen that.",
        "tests/state/test_state.py::test_an_existing_key_is_not_overwritten_by_accident",
    ),
    "state.steps-go-one-way": Promise(
        "A key with steps never goes back, whoever asks.",
        "tests/state/test_state.py::test_steps_are_never_taken_back",
    ),
    "numbers.distinct": Promise(
        "No two sessions get the same number, and there is no gap.",
        "tests/state/test_numbers.py::test_a_crowd_gets_distinct_numbers_without_a_gap",
    ),
    "numbers.above-every-branch": Promise(
        "A number is above all that stand in any branch.",
        "tests/state/test_numbers.py::test_a_number_is_above_all_that_stand_in_any_branch",
    ),
    "slots.ports-are-distinct-and-free": Promise(
        "Ports of many sessions are distinct, and each can be bound.",
        "tests/state/test_slots.py::test_a_crowd_gets_distinct_ports_that_can_be_bound",
    ),
    "slots.no-starving": Promise(
        "A large wish at the head of the line is not starved by small ones.",
        "tests/state/test_slots.py::test_a_large_wish_at_the_head_is_not_starved_by_small_ones",
    ),
    "slots.end-with-the-session": Promise(
        "A slot ends with its session at the latest.",
        "tests/state/test_slots.py::test_slots_end_with_their_session",
    ),
    "once.runs-once": Promise(
        "Of many callers with one key, one runs the command.",
        "tests/state/test_slots_cli.py::test_many_at_once_run_it_once",
    ),
    "once.crash-is-no-success": Promise(
        "A crash is told apart from success and from failure.",
        "tests/state/test_once.py::test_a_crash_is_told_apart_from_success_and_failure",
    ),
    "tasks.one-owner": Promise(
        "Of many processes that ask for the next task at once, no two get the same one.",
        "tests/tasks/test_task_races.py::test_fifty_tasks_go_to_fifty_of_sixty_four",
    ),
    "tasks.no-shared-path": Promise(
        "No two active tasks ever have overlapping paths.",
        "tests/tasks/test_task_races.py::test_no_two_active_tasks_ever_have_overlapping_paths",
    ),
    "tasks.end-once-in-order": Promise(
        "Every task ends exactly once and after those it waits for, however many owners are killed.",
        "tests/tasks/test_killed_owners.py"
        "::test_every_task_ends_exactly_once_and_in_order_while_owners_are_killed",
    ),
    "tasks.return-with-their-history": Promise(
        "The task of a dead owner returns, and its successor is told what happened.",
        "tests/tasks/test_tasks.py::test_the_task_of_a_dead_owner_returns_with_its_history",
    ),
    "tasks.nothing-starves": Promise(
        "A task of any priority is some day the first.",
        "tests/tasks/test_tasks_model.py::test_nothing_starves",
    ),
    "tasks.rings-are-shown": Promise(
        "Tasks that would wait for each other are refused and shown.",
        "tests/tasks/test_tasks.py::test_a_ring_is_refused_and_shown_and_changes_nothing",
    ),
    "tasks.one-key-one-task": Promise(
        "Adding the same key again gives the same task, also at the same instant.",
        "tests/tasks/test_task_races.py::test_one_key_added_by_many_at_once_is_one_task",
    ),
    "tasks.block-by-hand-stays": Promise(
        "A task that somebody blocked by hand stays blocked when its dependencies are done.",
        "tests/tasks/test_tasks.py::test_a_block_by_hand_outlasts_its_dependencies",
    ),
    "tasks.lists-are-read-once": Promise(
        "A checklist that was written by us or read in before adds nothing.",
        "tests/tasks/test_tasks_cli.py"
        "::test_the_list_is_a_table_json_or_a_checklist_that_can_be_read_in_again",
    ),
    "tasks.lists-are-whole": Promise(
        "A checklist with one bad item adds nothing.",
        "tests/tasks/test_tasks.py::test_a_list_with_one_bad_item_adds_nothing",
    ),
    "evidence.checks-run-on-the-commit": Promise(
        "An uncommitted fix does not make a check pass.",
        "tests/tasks/test_evidence.py::test_an_uncommitted_fix_does_not_pass_the_check",
    ),
    "evidence.empty-branches-are-no-work": Promise(
        "A branch without a commit of its own is no evidence, not even when others have landed meanwhile.",
        "tests/tasks/test_evidence.py::test_a_branch_without_a_commit_of_its_own_is_no_work",
    ),
    "evidence.paths-inside-claims": Promise(
        "Work outside the task's claims is not believed, landed or not.",
        "tests/tasks/test_evidence.py::test_landed_work_outside_the_claims_is_not_believed_either",
    ),
    "evidence.checks-end": Promise(
        "A check that hangs is killed with all its children.",
        "tests/tasks/test_evidence.py::test_a_check_that_hangs_is_killed_with_all_its_children",
    ),
    "cli.one-answer": Promise(
        "Every command with --json answers with exactly one JSON object, also when it is interrupted.",
        "tests/cli/test_interrupts.py::test_a_waiter_that_is_stopped_leaves_the_line_at_once",
    ),
    "cli.bad-input-changes-nothing": Promise(
        "A call that is refused for what it says has changed nothing.",
        "tests/cli/test_bad_input.py::test_patterns_that_cannot_be_claimed_change_nothing",
    ),
    "cli.empty-is-not-none": Promise(
        "An option whose value was empty by mistake is never taken for one that was not given.",
        "tests/cli/test_bad_input.py::test_a_value_that_was_empty_by_mistake_is_never_taken_for_none",
    ),
    "cli.no-strange-letters": Promise(
        "Names and notes of others cannot steer the terminal of whoever looks at them.",
        "tests/cli/test_bad_input.py::test_control_characters_of_others_do_not_reach_the_terminal",
    ),
    "cli.readers-agree": Promise(
        "The quick reader of a call and click hear the same.",
        "tests/cli/test_command_reading.py::test_both_readers_hear_the_same",
    ),
    "demo.touches-nothing": Promise(
        "The demo leaves the repository, store and session it was started in alone.",
        "tests/demo/test_demo.py::test_the_demo_keeps_its_promises_and_touches_nothing_around_it",
    ),
    "demo.table-is-true": Promise(
        "Every figure of the demo's table can be found again in what it leaves behind.",
        "tests/demo/test_demo.py::test_the_table_of_the_demo_is_found_again_by_plain_git",
    ),
    "demo.leaves-nothing": Promise(
        "Ctrl-C ends the demo with all of its processes, and takes its folder away.",
        "tests/demo/test_demo.py::test_ctrl_c_leaves_no_process_and_no_folder",
    ),
    "sessions.lost-is-told": Promise(
        "A registered process whose session ran out is told so, and never taken for the person.",
        "tests/sessions/test_identity.py::test_a_registered_shell_whose_lease_ran_out_is_told_so_and_never_taken_for_the_person",
    ),
    "claims.tokens-die-with-the-session": Promise(
        "A token is refused once its grant is over, also when its session is gone altogether.",
        "tests/cli/test_bad_input.py::test_numbers_and_ids_that_are_none_change_nothing",
    ),
    "paths.one-file-one-name": Promise(
        "A file has one name from every folder, worktree, link and spelling.",
        "tests/git/test_paths.py::test_a_file_has_one_name_from_every_folder",
    ),
    "paths.one-home": Promise(
        "A file in a submodule is claimed in the submodule alone.",
        "tests/git/test_paths.py::test_a_file_in_a_submodule_belongs_to_the_submodule",
    ),
    "repository.never-the-one-around": Promise(
        "A broken repository is told, and never taken for the one around it.",
        "tests/git/test_discovery.py::test_a_broken_repository_is_told_and_never_taken_for_the_one_around_it",
    ),
    "journal.copies-are-proved": Promise(
        "An edit or a cut shows in every copy of the journal, not only in the store.",
        "tests/journal/test_journal_cli.py::test_an_edited_copy_is_found",
    ),
    "store.never-in-two": Promise(
        "When it cannot be known where the store is, every command stops.",
        "tests/store/test_broken_stores.py::test_a_pointer_to_the_store_that_says_nothing_stops_every_command",
    ),
    "store.moved-is-out-of-use": Promise(
        "A store that was moved away answers nobody any more, not even those who only look.",
        "tests/setup/test_move_store.py::test_the_old_store_answers_that_it_has_moved_even_to_those_who_only_look",
    ),
    "store.rebuild-loses-nothing": Promise(
        "What is granted while a store is rebuilt is in the new one.",
        "tests/setup/test_move_store_under_traffic.py::test_every_grant_around_a_rebuild_is_in_the_new_store",
    ),
    "waiting.leaves-at-once": Promise(
        "Whoever is stopped while waiting leaves the line at once.",
        "tests/cli/test_interrupts.py::test_a_waiter_that_is_stopped_leaves_the_line_at_once",
    ),
    "workspaces.open-at-once": Promise(
        "Sixteen workspaces opened in the same instant are sixteen workspaces.",
        "tests/workspaces/test_workspaces_cli.py::test_sixteen_processes_at_once_and_others_beside_them",
    ),
    "workspaces.fresh-base": Promise(
        "A workspace begins where the remote is now, or says loudly that it does not.",
        "tests/workspaces/test_open.py::test_it_begins_where_the_remote_is_now",
    ),
    "workspaces.crash-anywhere": Promise(
        "Whoever is killed while a workspace is opened leaves nothing, or a whole workspace.",
        "tests/workspaces/test_workspace_crashes.py::test_an_opener_that_is_killed_leaves_nothing_or_a_whole_workspace",
    ),
    "workspaces.close-loses-nothing": Promise(
        "A workspace that is closed, by whomever and however often they are killed, loses nothing.",
        "tests/workspaces/test_workspace_crashes.py::test_a_closer_that_is_killed_loses_nothing",
    ),
    "workspaces.gc-breaks-none": Promise(
        "No prune or gc anywhere breaks a workspace.",
        "tests/workspaces/test_close.py::test_gc_and_prune_anywhere_break_no_workspace",
    ),
    "workspaces.merged-by-content": Promise(
        "A branch that was squashed or rebased onto the target is known to be merged.",
        "tests/workspaces/test_close.py::test_a_merged_branch_is_recognised_and_deleted",
    ),
    "rescues.byte-for-byte": Promise(
        "Whatever a checkout holds comes back byte for byte after it was removed and git has cleaned up.",
        "tests/rescue/test_rescue_trees.py::test_any_checkout_comes_back_as_it_was",
    ),
    "rescues.hostile-settings": Promise(
        "Looking at a clone runs nothing that its settings name.",
        "tests/rescue/test_rescues.py::test_hostile_settings_of_a_clone_are_never_run",
    ),
    "rescues.takeover": Promise(
        "What a lapsed holder left uncommitted is saved before its path is another's.",
        "tests/workspaces/test_workspaces_cli.py::test_what_a_lapsed_holder_left_is_saved_before_its_path_is_anothers",
    ),
    "stash.own-content": Promise(
        "What was put aside in one checkout never comes back in another.",
        "tests/workspaces/test_stashes.py::test_each_gets_its_own_content_back",
    ),
    "commits.own-files": Promise(
        "Agents that commit at once in one checkout get one commit each, with exactly their own files.",
        "tests/workspaces/test_commit_races.py::test_every_agent_in_one_checkout_gets_a_commit_of_its_own_file",
    ),
    "commits.take-nothing-back": Promise(
        "A commit that would take back what others landed is refused and shown.",
        "tests/workspaces/test_commit_races.py::test_a_stale_tree_on_a_fetched_base_does_not_delete_what_a_peer_landed",
    ),
    "git.flips-are-mended": Promise(
        "A repository that was made bare by accident works again with the next command.",
        "tests/git/test_shared_config.py::test_a_repository_made_bare_by_git_init_is_mended_by_the_next_command",
    ),
    "git.whole-tree-verbs": Promise(
        "While others are at work in a checkout, nobody switches its branch through us.",
        "tests/cli/test_guarded_git.py::test_three_shells_cannot_switch_branches_while_others_are_at_work",
    ),
    "landing.tested-tree": Promise(
        "What is tested is exactly what lands.",
        "tests/landing/test_landing_one_branch.py::test_what_is_tested_is_what_lands",
    ),
    "landing.never-twice": Promise(
        "The same tree is never tested twice.",
        "tests/landing/test_landing_one_branch.py::test_the_same_tree_is_never_tested_twice",
    ),
    "landing.green-and-green": Promise(
        "Of two branches that are green alone and red together exactly one lands, and the other hears of it.",
        "tests/landing/test_batches.py::test_two_that_are_green_alone_and_red_together_land_one_and_name_the_pair",
    ),
    "landing.crash-anywhere": Promise(
        "Killed at any step, the queue leaves a tested target, and no entry lost or landed twice.",
        "tests/landing/test_landing_crashes.py::test_a_runner_killed_at_any_step_leaves_a_tested_target_and_loses_nothing",
    ),
    "landing.holds-its-claims": Promise(
        "An entry holds its claims until it has ended, whatever becomes of its author.",
        "tests/landing/test_submit.py::test_the_entry_holds_the_claims_when_the_author_leaves",
    ),
    "landing.a-person-approves": Promise(
        "No agent can let through what waits for a person.",
        "tests/landing/test_landing_cli.py::test_an_agent_cannot_approve",
    ),
    "landing.hot-files": Promise(
        "Branches that add a line to the changelog and raise a counter all land, and each counts.",
        "tests/landing/test_mergeable_files.py::test_ten_branches_add_a_line_and_raise_a_counter",
    ),
    "landing.two-machines": Promise(
        "Two machines that take, claim and land at once leave on the remote what the queue says.",
        "tests/landing/test_two_machines.py::test_both_machines_take_tasks_claim_and_land_at_once",
    ),
    "landing.overtaken-writes-nothing": Promise(
        "A runner that was stopped past its lease writes nothing when it wakes up.",
        "tests/landing/test_landing_crashes.py::test_a_stopped_runner_that_wakes_up_writes_nothing",
    ),
    "deploys.never-older": Promise(
        "What is older than what is live is not deployed.",
        "tests/deploys/test_deploys_cli.py::test_what_is_older_than_what_is_live_is_refused",
    ),
    "deploys.one-at-a-time": Promise(
        "Of many deploys to one target no two overlap, and each is judged after its wait.",
        "tests/deploys/test_deploys_cli.py::test_of_many_at_once_no_two_overlap",
    ),
    "rules.version-by-content": Promise(
        "The version of the rules is told by their content; how lines end makes no difference.",
        "tests/rules/test_rules_model.py::test_how_lines_end_makes_no_difference_to_the_version",
    ),
    "rules.who-worked-under-which": Promise(
        "For any session it can be told which version of the rules it worked under at any time.",
        "tests/rules/test_rules.py::test_for_any_instant_it_can_be_told_what_a_session_worked_under",
    ),
    "rules.a-change-is-told-once": Promise(
        "A change of the rules reaches every running client with its next tool result, once.",
        "tests/hooks/test_messages_with_git.py::test_changed_rules_reach_each_running_session_once",
    ),
    "sessions.start-whatever-fails": Promise(
        "A session starts, and says so, when its rules cannot be read.",
        "tests/hooks/test_briefing.py::test_rules_that_cannot_be_read_are_one_line",
    ),
    "sessions.never-held-twice": Promise(
        "What a session leaves behind is pointed out once, so that it can always end.",
        "tests/hooks/test_session_end.py::test_the_same_is_pointed_out_once_and_less_of_it_not_again",
    ),
    "sandbox.held-as-said": Promise(
        "What the sandbox says it holds is stopped, as root and as a plain user; what it says is open, is.",
        "tests/sandbox/test_escapes.py::test_an_attempt_is_stopped_where_the_sandbox_says_so_and_nowhere_else",
    ),
    "sandbox.required-or-refused": Promise(
        "Without a promise that is required, nothing is started.",
        "tests/sandbox/test_start.py::"
        "test_a_required_promise_that_cannot_be_held_is_refused_and_nothing_starts",
    ),
    "sandbox.end-all-of-it": Promise(
        "Ending a sandboxed command ends all it started, also what left its group, session and environment.",
        "tests/sandbox/test_process_trees.py::test_ending_reaches_what_left_group_session_parents_and_environment",
    ),
    "resident.killing-loses-nothing": Promise(
        "The resident may be killed at any moment: grants stay, and the next caller starts another.",
        "tests/resident/test_resident.py::test_killed_under_traffic_it_loses_nothing",
    ),
    "resident.one-serves": Promise(
        "Of several residents that start at once, one serves.",
        "tests/resident/test_resident.py::test_of_several_that_start_at_once_one_serves",
    ),
    "guests.act-as-themselves": Promise(
        "A caller in a sandbox acts as the session whose secret it shows, and as nobody else.",
        "tests/resident/test_resident.py::test_a_guest_is_nobody_else",
    ),
    "guests.only-what-is-named": Promise(
        "In a sandbox a person's decisions, repairs and programs that would run outside are refused.",
        "tests/resident/test_resident.py::test_what_a_guest_may_not_do_is_refused",
    ),
    "git-hooks.foreign-paths": Promise(
        "A plain git commit of a path that another session holds is refused, in every checkout.",
        "tests/git/test_git_hooks.py::test_the_git_hooks_refuse_in_every_workspace",
    ),
    "git-hooks.target": Promise(
        "Once the target has landing checks, no git command but the queue's moves, renames or deletes it.",
        "tests/git/test_git_hooks.py::test_nothing_but_the_queue_moves_the_target",
    ),
    "git-hooks.branches-of-others": Promise(
        "The branch of another's workspace is neither deleted nor rewound.",
        "tests/git/test_git_hooks.py::test_the_branch_of_anothers_workspace_is_neither_deleted_nor_rewound",
    ),
    "git-hooks.own-hooks-run": Promise(
        "Every hook of the user still runs, with git's own arguments and input.",
        "tests/git/test_git_hooks.py::test_every_hook_of_the_user_still_runs_with_gits_own_input",
    ),
    "git-hooks.undone-exactly": Promise(
        "Taking our git hooks out brings the config file back byte for byte.",
        "tests/git/test_git_hooks.py::test_undoing_brings_back_the_config_byte_for_byte",
    ),
    "git-hooks.person-overrides": Promise(
        "A person overrides a git hook with a reason that is kept; an agent cannot.",
        "tests/git/test_git_hooks.py::test_a_person_overrides_with_a_reason_that_is_kept",
    ),
    "hooks.check-and-take": Promise(
        "Of many who want to edit the same file at once, one may; none of a thousand calls falls open.",
        "tests/hooks/test_hooks.py::test_of_many_at_once_none_falls_open",
    ),
    "hooks.trouble-refuses": Promise(
        "Whatever keeps a hook from judging an edit or a shell call is a refusal; looking goes on.",
        "tests/hooks/test_hooks.py::test_any_trouble_is_a_refusal_and_looking_goes_on",
    ),
    "hooks.no-lost-update": Promise(
        "An edit based on a version that has changed since is refused until the file is read again.",
        "tests/hooks/test_hooks.py::test_an_edit_on_a_version_that_is_gone_is_refused_until_it_is_read_again",
    ),
    "hooks.real-clients": Promise(
        "Real clients are refused a held file, and the model is told who holds it.",
        "tests/clients/test_protected.py::test_a_held_file_is_refused_and_the_model_told",
    ),
    "exec.roles-hold": Promise(
        "Whatever an agent in its sandbox tries, only what its role may change gets to the target branch.",
        "tests/exec/test_exec_roles.py::test_an_agent_that_tries_everything_gets_no_further_than_its_role",
    ),
    "exec.works-inside": Promise(
        "In a sandbox claims, commits, reports and landings work as outside.",
        "tests/exec/test_exec.py::test_claims_commits_reports_and_landings_work_inside",
    ),
    "exec.nothing-goes-on": Promise(
        "After the starter of a sandboxed command was killed, whoever comes next ends what goes on of it.",
        "tests/exec/test_exec_ends.py::test_after_its_starter_was_killed_whoever_comes_ends_it",
    ),
    "exec.nothing-is-lost": Promise(
        "What a stopped command had written and not committed is kept.",
        "tests/exec/test_exec_ends.py::test_a_signal_ends_all_of_it_and_keeps_the_work",
    ),
    "exec.no-settings-obeyed": Promise(
        "Nothing that an agent sets up in its clone is run outside its sandbox.",
        "tests/exec/test_exec.py::test_no_setting_of_the_clone_is_obeyed_outside",
    ),
    "exec.real-clients": Promise(
        "A real client works inside: its role and the kernel hold it, and what it may do lands.",
        "tests/clients/test_inside.py::test_a_client_works_in_its_role_and_no_further",
    ),
    "plans.shown-before-anything-starts": Promise(
        "A plan shows its waves, what goes in sequence and why, and its cost at most, and changes nothing.",
        "tests/plans/test_plan_cli.py::test_programs_get_the_same_as_json_and_nothing_is_changed",
    ),
    "plans.collisions-never-run-at-once": Promise(
        "Two tasks of a plan that could change the same path never stand side by side.",
        "tests/plans/test_plan_checks.py::test_what_meets_never_runs_at_the_same_time",
    ),
    "plans.entered-once": Promise(
        "The same plan entered again adds nothing.",
        "tests/plans/test_add_plans.py::test_the_same_plan_again_adds_nothing",
    ),
    "workers.garbage-comes-to-a-reason": Promise(
        "Whatever a worker says is a message of the protocol, or a reason why it is none.",
        "tests/protocol/test_worker_messages.py::test_garbage_comes_to_a_reason",
    ),
    "workers.none-survives": Promise(
        "A worker that goes wrong is ended with everything it started, also where it ignores SIGTERM.",
        "tests/workers/test_run_worker.py"
        "::test_whoever_ignores_the_request_to_end_is_killed_with_all_its_children",
    ),
    "mcp.first-answers-are-the-sdks": Promise(
        "What the MCP server answers before the SDK is loaded is what the SDK answers, word for word.",
        "tests/mcp/test_early_answers.py::test_what_the_front_answers_is_what_the_sdk_answers",
    ),
    "hands.a-link-and-no-name": Promise(
        "A worker that may only look acts for the keeper that started it; a name alone gives nobody that.",
        "tests/sessions/test_worker_sessions.py::test_who_is_only_called_like_a_worker_has_nothing_in_hand",
    ),
    "hands.nothing-beyond-the-role": Promise(
        "What a keeper holds lets its worker do nothing that the worker's own role forbids.",
        "tests/sessions/test_worker_sessions.py::test_a_worker_gains_nothing_that_its_role_forbids",
    ),
    "hands.a-question-loses-no-change": Promise(
        "What a worker returns while a person is asked is kept on the branch of its attempt.",
        "tests/workers/test_run_worker_sessions.py::test_what_a_worker_returned_outlives_its_question",
    ),
    "handoffs.one-owner": Promise(
        "kill -9 at any step of sending or accepting a handoff leaves the task with exactly one owner.",
        "tests/handoffs/test_handoffs_with_git.py::test_a_sender_killed_at_any_step_leaves_one_owner",
    ),
    "handoffs.successor-hears": Promise(
        "What is handed to an agent that goes idle and dies is told to its successor, once.",
        "tests/handoffs/test_handoffs_with_git.py"
        "::test_sent_while_its_receiver_goes_idle_and_dies_the_successor_hears_of_it_once",
    ),
    "handoffs.against-the-hash": Promise(
        "A handoff is accepted against the hash of its content; another one is refused.",
        "tests/handoffs/test_handoffs.py::test_the_hash_of_something_else_is_refused",
    ),
    "handoffs.bounded": Promise(
        "Over the maximum a handoff is refused, what it says is kept, and a person decides.",
        "tests/handoffs/test_handoffs.py::test_over_the_maximum_a_person_decides_and_what_was_said_is_kept",
    ),
    "handoffs.dead-owners-leave-traces": Promise(
        "Whoever takes a task of an owner that died reads branch, rescue, commands and lessons of it first.",
        "tests/handoffs/test_handoffs_with_git.py::test_whoever_follows_a_dead_owner_reads_what_it_left",
    ),
    "mcp.few-tools": Promise(
        "There are at most ten tools, under 2,500 tokens in all, and those that only read say so.",
        "tests/mcp/test_tools.py::test_the_tools_are_few_and_say_what_they_only_read",
    ),
    "mcp.subagents-act-as-themselves": Promise(
        "A claim of a subagent through the MCP server is the subagent's, where its client tells it apart.",
        "tests/mcp/test_identity.py::test_the_call_id_that_the_hook_reported_names_the_subagent",
    ),
    "mcp.bad-calls-change-nothing": Promise(
        "A call with wrong, huge or escaping arguments is a clear tool error, and changes nothing.",
        "tests/mcp/test_hostile.py::test_bad_calls_have_changed_nothing",
    ),
    "mcp.waits-end-in-time": Promise(
        "A wait through the MCP server ends before clients give up, and says how to go on.",
        "tests/mcp/test_waiting.py::test_a_wait_ends_by_itself_and_says_how_to_go_on",
    ),
    "mcp.given-up-waits-take-nothing": Promise(
        "Who cancels a wait does not hold the claim without knowing it.",
        "tests/mcp/test_waiting.py::test_who_cancels_a_wait_does_not_get_the_claim_behind_its_back",
    ),
    "mcp.token-per-session": Promise(
        "Over HTTP a wrong or missing token is refused, and the journal tells of it.",
        "tests/mcp/test_http.py::test_a_wrong_or_missing_token_is_refused_and_written_down",
    ),
    "mcp.init-and-undo": Promise(
        "`init` enters the MCP server in each client's settings, and undoing brings back every byte.",
        "tests/managed_files/test_mcp_servers.py::test_init_enters_the_server_and_undo_brings_every_byte_back",
    ),
    "retries.starts-are-bounded": Promise(
        "A task that always fails to start is started a few times and then put before a person.",
        "tests/tasks/test_retries.py::test_t24_what_always_fails_to_start_is_started_a_few_times_in_70_hours",
    ),
    "retries.idle-success-is-bounded": Promise(
        "Attempts that end well and change nothing are stopped after a few of them.",
        "tests/tasks/test_retries.py::test_t25_what_ends_well_and_changes_nothing_is_parked_after_k_runs",
    ),
    "retries.new-ids-begin-no-new-budget": Promise(
        "Children and follow-ups share the budget of the task they come from.",
        "tests/tasks/test_retries.py::test_t26_five_steps_never_become_97_records",
    ),
    "retries.broken-environment-charges-nobody": Promise(
        "The same failure to start on three tasks pauses the pool, and no attempt is charged.",
        "tests/tasks/test_retries.py::test_t27_one_broken_environment_pauses_the_pool_and_charges_nobody",
    ),
    "retries.only-a-person-gives-a-new-budget": Promise(
        "What was stopped goes on only when a person says so, with its history.",
        "tests/tasks/test_retries.py::"
        "test_only_a_person_lets_what_was_stopped_go_on_with_a_fresh_budget_and_all_history",
    ),
    "gates.only-a-person-answers": Promise(
        "No agent, role, subagent, tool or sandboxed caller can answer what waits for a person.",
        "tests/gates/test_gates_cli.py::test_no_agent_can_answer_and_what_moved_cannot_be_approved",
    ),
    "gates.answers-are-bound": Promise(
        "A yes counts for exactly the commit, file or command that was asked about.",
        "tests/gates/test_gates.py::test_the_riskiest_comes_first_and_an_approval_is_for_one_thing",
    ),
    "gates.the-lease-stands-still": Promise(
        "Who waits for a person keeps the task and its claims, however long that takes.",
        "tests/gates/test_gates.py::test_the_answer_gives_task_and_claims_back_to_a_silent_owner",
    ),
    "gates.answers-outlive-their-owner": Promise(
        "When whoever asked is gone, the next owner of the task reads the answer first.",
        "tests/gates/test_gates.py::test_without_its_owner_the_task_goes_back_with_the_answer_as_a_lesson",
    ),
    "gates.killed-anywhere": Promise(
        "A question or an answer that is killed at any step leaves the task with exactly one owner.",
        "tests/gates/test_gate_crashes.py::test_a_killed_question_or_answer_leaves_one_owner",
    ),
    "watch.one-event-per-fact": Promise(
        "The same fact is one event, however often and by however many watchers it is seen.",
        "tests/events/test_events.py::test_a_fact_is_one_event_however_often_and_by_whomever_it_is_seen",
    ),
    "watch.changes-nothing": Promise(
        "A watcher writes events and changes nothing else.",
        "tests/events/test_events.py::test_the_dead_and_the_stale_are_seen_and_left_alone",
    ),
    "watch.told-once": Promise(
        "Of several watchers one sends an event, and a receiver that has it never gets it again.",
        "tests/events/test_watch_cli.py::test_a_webhook_gets_each_event_once_from_two_watchers",
    ),
    "watch.killed-senders-repeat-nothing": Promise(
        "A watcher that is killed while it sends lets nobody hear the same twice.",
        "tests/events/test_watch_cli.py::test_a_watcher_killed_while_it_sends_lets_nobody_hear_it_twice",
    ),
    "fans.joined-once": Promise(
        "However many branches end at the same instant, the task that was split goes on exactly once.",
        "tests/fanout/test_split_and_join.py::test_sixteen_branches_that_end_at_the_same_instant_are_joined_once",
    ),
    "fans.one-failure-is-one-failure": Promise(
        "A branch that fails takes no other down, and the join is given all results and failures in order.",
        "tests/fanout/test_split_and_join.py::test_a_failing_branch_stops_no_other_and_the_join_is_told_of_all",
    ),
    "fans.killed-anywhere": Promise(
        "A split, a join or a verdict that is killed at any step has happened whole, or not at all.",
        "tests/fanout/test_dying_joins.py::test_whoever_dies_in_the_middle_leaves_all_of_it_or_nothing",
    ),
    "reviews.bound-to-the-commit": Promise(
        "Only a commit that its reviewers approved can land; a commit behind it needs a review of its own.",
        "tests/landing/test_approved_work.py::test_a_commit_behind_the_approved_one_needs_a_review_of_its_own",
    ),
    "reviews.contradictions-are-decided": Promise(
        "When reviewers contradict each other, the decider decides, and nobody else.",
        "tests/reviews/test_reviews.py::test_a_contradiction_goes_to_the_named_decider_whose_verdict_counts",
    ),
    "reviews.come-to-an-end": Promise(
        "A writer and a reviewer that never agree stop, with all that was said.",
        "tests/reviews/test_reviews.py::"
        "test_a_writer_and_a_reviewer_that_never_agree_stop_at_the_bound_with_the_whole_history",
    ),
    "reviews.nobody-judges-own-work": Promise(
        "The author of a change gives no verdict on it.",
        "tests/reviews/test_reviews.py::test_nobody_judges_their_own_work",
    ),
    "reviews.on-any-machine": Promise(
        "What one machine made, another reviews and lands; what it cannot have, it leaves alone.",
        "tests/workers/test_run_two_machines.py::test_work_of_one_machine_is_reviewed_and_landed_by_another",
    ),
    "langgraph.killed-anywhere": Promise(
        "A graph whose process is killed at any change goes on, and does nothing to its task twice.",
        "tests/integrations/test_langgraph.py::test_the_example_survives_kills_and_does_nothing_twice",
    ),
    "langgraph.only-persons-pass-gates": Promise(
        "Whatever resumes a graph, a gate in it lets nothing pass but a person's answer.",
        "tests/integrations/test_langgraph.py::"
        "test_only_a_persons_answer_lets_a_graph_pass_a_gate_also_after_a_restart",
    ),
    "langgraph.loops-end": Promise(
        "Two nodes that never agree stop at the bound, with all feedback; a repetition stops earlier.",
        "tests/integrations/test_langgraph.py::"
        "test_a_writer_and_a_reviewer_that_never_agree_stop_with_all_that_was_said",
    ),
    "steps.with-what-they-tell-of": Promise(
        "What was done under a key, and the note that it was, are one change.",
        "tests/state/test_steps.py::test_a_step_is_there_with_what_it_tells_of_or_neither_is",
    ),
}
