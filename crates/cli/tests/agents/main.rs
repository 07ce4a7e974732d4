//! The real agents, kept by the whole program, against a scripted model on loopback: what ostler reports about them is
//! right, and no message to or from them is lost. One binary, because linking costs more than running.
//!
//! Needs `cargo xtask agents`. Without it these tests print conspicuously that they were left out, and on a build
//! machine (`CI=true`) they fail.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that finds no value has failed")]

mod acp;
mod acp_agents_are_kept;
mod acp_asks;
mod acp_messages_arrive_once;
mod acp_one_writer;
mod acp_turns_end_as_reported;
mod adoptions;
mod answers_are_for_scripts;
mod background_tasks_begin_no_turn;
mod big_prompts_arrive_whole;
mod chats_show_the_work;
mod claude_allows_for_longer;
mod claude_asks;
mod claude_tells_from_a_terminal;
mod codex_works_in_its_own_process;
mod conversations_go_to_worktrees;
mod dashboards_show_what_is_needed;
mod directories_are_the_sessions;
mod errors_are_failures;
mod every_agent_is_kept;
mod failed_starts_are_failed_turns;
mod fans_pay_once;
mod files_pay_once;
mod fixture;
mod forks;
mod groups_start_each_once;
mod handovers;
mod hangs_can_be_interrupted;
mod interrupts_end_tools;
mod keepers_may_be_killed;
mod kills_are_stops;
mod lines_may_be_cut;
mod loops_pay_once;
mod lost_transcripts_are_brought_back;
mod messages_reach_the_model_once;
mod money_is_counted;
mod no_answer_is_no_success;
mod nothing_accepted_is_forgotten;
mod one_writer;
mod opencode_is_proven_by_rows;
mod paid;
#[path = "../attach/person.rs"]
#[expect(dead_code, reason = "shared with the tests of attach, which need all of it")]
mod person;
mod piped_input_follows_the_prompt;
mod prompts_open_terminals;
mod questions_show_the_input;
mod queued_agents_start_once;
mod qwen;
mod retries_are_shown;
mod reviews_only_read;
mod same_words_are_two_messages;
mod shutdowns_save_everything;
mod sshd;
mod stops_lose_nothing;
mod subagents_stay_apart;
mod terminals_have_logs;
mod terminals_name_their_conversation;
mod terminals_show_their_screen;
mod terminals_take_messages;
mod tools_are_shown_as_they_went;
mod turns_can_be_rewound;
mod usage_limits;
mod usage_limits_in_a_terminal;
mod what_is_saved_is_verified;
mod workers_pay_once;
mod worktrees_keep_agents_apart;
