//! The promises of the whole program, each checked by one file. One binary, because linking takes longer than running.

#![expect(clippy::unwrap_used, reason = "a test that finds no value has failed")]

mod any_one_process_may_be_killed;
mod clocks_may_jump;
mod deaf_programs_are_killed;
mod derived_files_may_be_wrong;
mod errors_are_one_line;
mod floods_are_bounded;
mod foreign_processes_are_not_signalled;
mod forks_go_their_own_way;
mod full_disk_loses_nothing;
mod idle_costs_nothing;
mod inner_sessions_outlive_outer_ones;
mod keepers_that_keep_dying_show;
mod launchers_may_end;
mod launches_are_whole_or_nothing;
mod limits_are_in_force_or_refused;
mod lines_without_end_fit_into_memory;
mod lingering_agents_are_ended;
mod lists_say_what_a_close_look_says;
mod logs_show_what_was_said;
mod many_sessions_hit_no_limit;
mod messages_arrive_once;
mod names_can_change;
mod no_wrong_state_is_shown;
mod nothing_is_left_behind;
mod odd_homes_do_no_harm;
mod old_terminal_output_is_dropped;
mod one_conversation_has_one_writer;
mod other_users_are_kept_out;
mod outcomes_are_final;
mod outcomes_are_the_agents;
mod output_is_byte_exact;
mod reboots_end_sessions;
mod replies_begin_with_the_name;
mod resume_offers_the_newest;
mod run_follows_to_the_end;
mod scopes_contain_where_we_may_not;
mod stop_is_never_forgotten;
mod the_environment_reaches_the_agent_alone;
mod the_lock_follows_the_conversation;
mod wait_says_how_it_ended;
mod wait_wakes_every_waiter;
mod words_name_sessions;

use ostler_testkit::Harness;

fn harness() -> Harness {
    Harness::new(env!("CARGO_BIN_EXE_ostler"))
}

/// Whether the test runs as root, which `what` needs. In CI tests must be complete, so not being root is a failure
/// there.
fn root_for(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{what} needs root");
        eprintln!("left out: {what} needs root");
    }
    root
}
