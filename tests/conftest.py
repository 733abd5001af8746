# SPDX-License-Identifier: Apache-2.0
import signal

import pytest

# A run in the background (`make test &`) starts with SIGINT ignored, and would pass that on to the programs that tests
# interrupt: they would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that cost a third of a second of CPU or more. Most have a sibling that `make test` runs: a shorter storm of the
# same kind, the same promise with other parameters, the demo's late workers for the storm of late ones, the example
# that ships orders for the killed programs that do. The others guard parts that a change seldom touches: mounts, HTTPS
# by the command, a missing Java, multiprocessing. The names are those of the tests, with the parameters where only some
# are dear.
DEAR = {
    "test_fifty_forks_under_traffic_lose_nothing",
    "test_no_rule_depends_on_the_place_of_code_or_the_names_of_variables",
    "test_survivor_of_a_kill_continues_at_once",
    "test_storm_on_server_and_programs_breaks_no_promise[2-3]",
    "test_queue_at_the_limit_on_file_sizes_refuses_sends_and_can_be_drained[3000000-500-before]",
    "test_queue_at_the_limit_on_file_sizes_refuses_sends_and_can_be_drained[3000000-500-later]",
    "test_second_write_on_the_thread_that_holds_the_turn_is_refused_at_once[another object-engine]",
    "test_second_write_on_the_thread_that_holds_the_turn_is_refused_at_once[another object-transaction]",
    "test_interrupts_in_other_calls_leave_nothing_behind[connect]",
    "test_interrupts_in_other_calls_leave_nothing_behind[engine]",
    "test_interrupts_in_other_calls_leave_nothing_behind[wait]",
    "test_killed_mover_leaves_each_message_in_exactly_one_queue",
    "test_two_processes_at_once_do_the_work_of_one",
    "test_quoted_texts_of_any_characters_are_read_back",
    "test_long_queue_urls_are_not_kept_in_memory[GetQueueAttributes]",
    "test_work_on_a_fifo_queue_does_not_grow_with_its[groups]",
    "test_work_on_a_fifo_queue_does_not_grow_with_its[messages of a locked group in front of another]",
    "test_engine_and_model_have_the_same_limit_in_flight",
    "test_a_process_killed_in_mid_upgrade_leaves_the_old_version_whole",
    "test_mounted_backup_can_be_read",
    "test_threads_that_open_and_close_raise_no_false_alarm",
    "test_processes_that_open_and_close_raise_no_false_alarm[20]",
    "test_processes_end_with_a_parent_that_is_killed",
    "test_a_refused_line_of_a_commit_that_failed_is_not_set_aside",
    "test_each_message_has_one_row",
    "test_orders_are_placed_and_shipped",
    "test_lists_in_brackets_are_read_back",
    "test_opening_and_closing_next_to_a_writer_leaves_no_thread",
    "test_interrupts_in_other_calls_leave_nothing_behind[look]",
    "test_full_queue_is_drained_by_another_process_while_a_sender_keeps_trying[NORMAL]",
    "test_second_write_on_the_thread_that_holds_the_turn_is_refused_at_once[the same object-engine]",
    "test_full_queue_refuses_sends_can_be_drained_and_takes_sends_again[NORMAL-500]",
    "test_a_kill_while_an_order_is_placed_leaves_all_or_nothing[before the commit-False]",
    "test_a_kill_while_an_order_is_placed_leaves_all_or_nothing[between order and message-False]",
    "test_a_second_demo_uses_a_new_file_and_never_that_of_the_environment",
    "test_a_task_waits_for_space_on_a_full_disk_and_needs_little",
    "test_two_processes_that_use_two_files_do_not_deadlock",
    "test_replacement_process_creates_no_file",
    "test_replacement_process_still_refuses_callers_after_the_last_key_is_removed[True]",
    "test_log_gets_a_line_for_each_request",
    "test_interrupts_in_other_calls_leave_nothing_behind[block]",
    "test_another_task_is_refused_while_an_engine_writes",
    "test_processes_share_a_port_and_a_dead_one_is_replaced",
    "test_hot_paths_are_compared_with_both_baselines",
    "test_headers_of_a_trusted_proxy_decide_about_tls",
    "test_queue_urls_repeat_the_clients_host_or_the_base_url[https://queues.example]",
    "test_refused_requests_are_not_kept_in_memory",
    "test_handler_that_raises_leaves_no_turn_behind[3]",
    "test_server_accepts_the_keys_of_a_credentials_file",
    "test_attach_needs_botocore_but_not_boto3",
    "test_threads_that_begin_the_first_transactions_together_all_succeed",
    "test_rate_limit_is_answered_with_request_throttled",
    "test_the_sum_is_right_on_a_machine_ten_times_slower[a part]",
    "test_full_queue_refuses_sends_can_be_drained_and_takes_sends_again[FULL-500]",
    "test_full_queue_is_drained_by_another_process_while_a_sender_keeps_trying[FULL]",
    "test_error_of_a_full_disk_names_the_stored_lines_and_the_way_to_continue",
    "test_work_on_a_fair_queue_does_not_grow_with_its_tenants",
    "test_turns_add_little_work_to_a_receive",
    "test_transaction_lost_in_a_reference_cycle_is_ended_when_a_write_waits",
    "test_an_attached_session_makes_clients_that_are_answered_from_the_file[boto3]",
    "test_second_write_on_the_thread_that_holds_the_turn_is_refused_at_once[the same object-transaction]",
    "test_other_object_on_the_same_file_is_refused_in_a_transaction",
    "test_the_next_process_continues_the_task_of_a_killed_one",
    "test_an_attached_client_keeps_its_class_and_is_answered_from_the_file",
    "test_mounted_folder_is_used_by_two_containers_at_once",
    "test_without_threads_a_writer_takes_its_place_in_line",
    "test_a_process_that_only_receives_continues_a_task_of_another",
    "test_serves_https_with_a_certificate",
    "test_server_shares_the_file_and_ends_well_on_a_signal[15]",
    "test_refused_send_is_not_remembered[NORMAL]",
    "test_without_java_a_report_says_so_in_one_line",
    "test_chosen_port_is_printed_even_with_quiet",
    "test_a_container_with_a_boot_clock_of_its_own_shows_the_same_instant",
    "test_size_of_all_unread_answers_together_is_limited",
    "test_a_kill_while_an_order_is_placed_leaves_all_or_nothing[after the commit-True]",
    "test_session_of_a_key_signs_requests",
    "test_files_opened_and_closed_leave_no_descriptor",
    "test_each_call_without_descriptors_raises_a_clear_error_and_works_afterwards[poll]",
    "test_environment_cannot_name_a_trusted_proxy",
    "test_children_of_multiprocessing_work_at_the_same_time",
    "test_server_accepts_the_names_of_loopback_base_url_and_allowed_hosts",
    "test_each_signature_that_botocore_puts_in_a_header_is_accepted",
    "test_commit_of_a_writer_that_died_before_its_wake_up_is_noticed",
    "test_a_signal_ends_the_report_without_output[starting-SIGTERM]",
    "test_ctrl_c_cancels_the_task_and_prints_the_number_of_moves[15-143]",
    "test_a_checkpoint_does_not_wait_for_a_reader_of_the_newest_rows",
    "test_a_second_signal_ends_the_running_command",
}

# Of the tests that start processes or fill disks for each of their parameters, the parameters that `make test` runs.
SAMPLES = {
    "test_a_signal_ends_send_with_the_exact_count_of_stored_lines": {"2500-2-130", "1-15-143"},
    "test_messages_that_could_not_be_written_are_kept": {
        "pipe-141---loop",
        "closed-1--n 3",
        "/dev/full-1--n 3",
    },
    "test_queue_filled_during_a_long_read_is_usable_after_the_read": {
        "FULL-open",
        "NORMAL-opened again",
    },
    "test_disk_filled_by_another_program_still_lets_consumers_drain": {"FULL-16384", "NORMAL-0"},
    "test_disk_filled_by_another_program_lets_groups_be_drained_in_order": {"FULL-0"},
    "test_process_that_sends_all_the_time_is_refused": {"-wal cut", "both replaced"},
    "test_idle_process_refuses_all_writes_after_its_next_check": {"-wal deleted", "file cut"},
    "test_queue_at_the_limit_on_file_sizes_refuses_sends_and_can_be_drained": {"3000000-100000-later"},
    "test_full_queue_opens_again_and_drains": {"FULL-another program, too"},
    "test_a_java_that_can_t_run_spark_is_named": {"exit 3-does not run .it prints nothing"},
    "test_name_of_any_characters_works_and_is_the_name_on_disk": {"like a URI", "other bytes"},
    "test_mounted_file_is_refused": {"name-plain", "symbolic link-escaped"},
    "test_file_in_the_folder_that_this_user_may_not_write_is_named": {"turn"},
}


# Folders whose tests run one after the other, while others run two at a time: two Sparks would share two cores, and two
# processes would install one client into the same folder, as suites and clients do.
ONE_AT_A_TIME = {"spark": "spark", "clients": "clients", "suites": "clients", "frameworks": "frameworks"}


def pytest_collection_modifyitems(items):
    """Half of the fence's cases are slow too: Amazon's mode runs on standard queues, the other on FIFO ones."""
    for item in items:
        function, _, parameters = item.name.partition("[")
        parameters = parameters.removesuffix("]")
        kinds = set(parameters.split("-"))
        is_twin = item.path.name == "test_lease_lost.py" and (
            {"aws", "fifo"} <= kinds or {"docs", "standard"} <= kinds
        )
        is_left_out = parameters not in SAMPLES.get(function, {parameters})
        if item.name in DEAR or is_twin or is_left_out:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """For `--dist loadscope`, which the slow tests use: a scope is a test, or a folder of ONE_AT_A_TIME."""
    if config.getvalue("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            folder = nodeid.split("/")[1]
            return ONE_AT_A_TIME.get(folder, nodeid)

    return Scheduling(config, log)
