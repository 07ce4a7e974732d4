//! `ostler help`: the help of a command, or a topic that concerns several commands; and the examples below each
//! command's `--help`.

use crate::args::{Cli, Help};
use crate::exit::{Code, Failure, Result};
use crate::say;
use clap::CommandFactory;
use ostler_engine::config::KEYS;
use ostler_engine::installed;
use ostler_engine::suggest::nearest;

/// Name, what it is about, text.
const TOPICS: [(&str, &str, &str); 7] = [
    (
        "exit-codes",
        "what run, resume, fork, wait and stop exit with",
        "  0    succeeded; stop: ended and saved, or nothing to save
  1    the agent failed
  2    wrong usage, or an ambiguous id
  3    no such session
  4    the session asks for something: ostler answer ID
  5    lost: the process is gone and nothing says how it ended
  6    stopped or interrupted on request
  7    refused: another process is using the conversation
  8    ended, but the last turn could not be proven saved
  124  --timeout passed and the session is still alive; or run itself was ended (SIGTERM, closed terminal)
  125  ostler itself failed
",
    ),
    (
        "ids",
        "how to name a session",
        "  k3v9x2ab   its id, as ostler ls shows it
  k3         the beginning of an id or a name, if it is unique
  tests      its name (run --name tests)
  @last      the newest session
  group:NAME         all sessions of a group
  label:KEY=VALUE    all sessions with this label (run --label KEY=VALUE)

Commands that take several sessions take any number of these. group: and label: mean sessions that are not archived; a
command for one session takes them when only one matches. ostler send group:NAME \"…\" sends to all of them.

Commands for a conversation (adopt, who, repair) also take the agent's own id of it.
",
    ),
    (
        "files",
        "where ostler keeps things",
        "  $OSTLER_HOME             sessions and archive; default $XDG_STATE_HOME/ostler, else ~/.local/state/ostler
    sessions/ID/           one folder per session; ostler show ID says where
      session.json         what was asked for
      journal.jsonl        what happened, line by line
      inbox.jsonl          messages to the agent
      runs/N/in, out, err  what the agent was given and what it wrote, byte for byte
      runs/N/outcome.json  how run N ended
      checkpoints/         copies of the agent's transcript
    archive/               archived sessions
    search/                index of ostler search; may be deleted
  $XDG_CONFIG_HOME/ostler/config.toml
                           settings; default ~/.config/ostler/config.toml, see ostler help config

The transcript itself belongs to the agent and stays where the agent keeps it.
",
    ),
    (
        "agents",
        "which agents can be run",
        "Coding agents: {agents}; ostler agents says which are installed. Others:

  acp    any program that speaks the Agent Client Protocol: ostler run acp \"…\" -- PROGRAM
  demo   part of ostler, needs no model: ostler run demo \"fix the failing test\"
  NAME   yours, from [agents.NAME] in config.toml

Without an agent, run takes default_agent from config.toml, else the only one that is installed.
Arguments after -- go to the agent: ostler run {1} \"…\" -- {arguments}
Without an agent and with --, anything can be kept: ostler run -- make test
",
    ),
    (
        "config",
        "the settings in config.toml",
        "  default_agent = \"{1}\"             the agent for prompts without an agent name
  detach_key = \"ctrl-\\\\\"            detaches; pressed twice it goes to the program inside
  ui = \"default\"                    ostler alone opens the dashboard (ostler ui) where there are sessions; \"off\"
  grace = \"10s\"                     how long stop waits before it kills
  linger = \"2s\"                     how long processes left behind by a program may take to exit
  autosave = \"5s\"                   how often the transcript is copied while a turn runs; \"off\"
  snapshots = \"off\"                 take no snapshots of an agent's files at the end of its turns
  snapshot_file_limit = \"50MiB\"     larger files are left out of snapshots
  output_limit = \"2GiB\"             how much a run without a terminal may print; \"off\"
  terminal_output_limit = \"64MiB\"   how much output of a terminal is kept
  min_free_space = \"1GiB\"           sessions write no output while less disk space is free; \"off\"
  retry_alarm = \"5m\"                alarm after a turn has only retried for this long; \"off\"
  answer_within = \"1m\"              alarm when an ACP agent does not answer for this long; \"off\"
  archive_after = \"7d\"              archive sessions this long after their end; \"off\"
  purge_after = \"30d\"               delete them this long after that; \"off\"

  [limits]                          for every new session: memory = \"2G\", cpus = 1.5, processes = 200

  [agents.mine]                     your own agent
  command = [\"my-agent\", \"--flag\"]
  protocol = \"acp\"                  if it speaks the Agent Client Protocol
  mode = \"terminal\"                 if it draws on a terminal
  end = \"SIGINT\"                    how to end it: SIGTERM, SIGINT, SIGHUP or stdin; or end_text = \"/quit\"

  [queues.NAME]                     for ostler run --queue NAME; \"default\" for --queue alone
  slots = 4                         how many of its sessions run at once
  min_free_memory = \"2GiB\"          the next one starts only while so much memory is free
  max_load = 8.0                    and only while the load of the machine is below this

  [agents.{1}]                      for every new session of this agent: timeout = \"2h\", turn_timeout = \"10m\",
                                    budget = 5.0, max_turns = 20, restart = \"on-failure\", on_limit = \"wait\"

  [notify]                          notifications when a session asks, fails or ends: ostler help notify

All settings: ",
    ),
    (
        "jobs",
        "sessions that drive other sessions, and continue after any kill",
        "A job is a session whose program is ostler: it starts others and waits for them. ls lists those below it; wait, logs,
show, stop and events work on it. Whatever is killed, it continues where it was, and repeats no step.

  ostler loop AGENT \"…\" --until CMD    turn after turn, until CMD exits with 0
  ostler up                            the jobs of ostler.toml, each as soon as what it needs has succeeded:

    [defaults]
    agent = \"{1}\"
    [job.fix]
    prompt = \"make the tests pass\"
    worktree = true
    loop = { until = \"make test\", max = 8 }
    [job.review]
    review = { of = \"fix\", by = \"{2}\" }
    [job.land]
    needs = [\"review\"]
    run = \"ostler land fix\"

  ostler fan ID \"…\" \"…\"                copies a session once per prompt, and sends the results back to it
  ostler worker --agents FILE.md       works on the newest state of a branch, whenever that moves
  ostler stop ID                       stops its sessions, then the job
  ostler answer ID --text \"…\"          answers what it asks, and it continues
  ostler resume ID                     continues a job that was stopped
  ostler recover                       continues jobs after a reboot; ostler install-service: at each login

A session of a job that is stopped by a person stops only itself; the job counts it as failed.
Exit codes are those of ostler wait: 0 succeeded, 1 a limit ended it or it failed, 4 it asks, 5 lost, 6 stopped.
",
    ),
    (
        "notify",
        "notifications when a session needs you",
        "  [notify]
  moments = [\"asking\", \"failed\", \"ended\"]   also: turn, lost, unproven, limit, budget; all when not set
  desktop = true                  through the notification service of the desktop
  terminal = true                 in attached terminals
  command = [\"my-notify\"]         a program; it gets JSON on standard input, and OSTLER_NOTIFY_TITLE, _TEXT, ...
  only_detached = true            not while a terminal is attached to the session
  min_duration = \"30s\"            not for turns and runs that took less time
  quiet = \"22:00-07:00\"           not in these hours
  timeout = \"10s\"                 how long one attempt may take

  [notify.webhook]                JSON, with X-Ostler-Delivery (the same on a retry)
  url = \"https://example.org/hook\"
  secret_file = \"~/.hook-secret\"  signs it: X-Hub-Signature-256; or secret_env = \"NAME\"

  [notify.ntfy]
  url = \"https://ntfy.example.org/topic\"
  token_file = \"~/.ntfy-token\"    or token_env = \"NAME\"

What fails is tried again with growing pauses and given up after an hour: ostler doctor says so.
ostler notify test sends one each way; ostler notify clear drops what waits.
",
    ),
];

/// The examples below the `--help` of a command, by its name.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "run",
        &[
            "ostler run {1}                                open it in a terminal; Ctrl-\\ leaves it running",
            "ostler run {1} \"fix the failing test\"         one turn, followed to its end",
            "ostler run -d {2} \"update the docs\"           in the background; prints the id",
            "git diff | ostler run {1} \"review this\"       with piped input",
            "answer=$(ostler run {3} \"1+1?\")               the final answer for a script",
            "ostler run -w -d {1} \"fix the login\"          in a git worktree of its own; see ostler diff",
            "ostler run -d --queue {1} \"fix the typos\"     when the queue has a free slot; see ostler help config",
            "ostler run -d --at 22:00 -- make test         tonight; --after ID: when that session has succeeded",
            "ostler run -- make test                       keep any command",
        ],
    ),
    ("ls", &["ostler ls", "ostler ls -a --json"]),
    ("ui", &["ostler ui"]),
    ("agents", &["ostler agents"]),
    ("show", &["ostler show @last", "ostler show --json k3v9 | jq .outcome"]),
    ("who", &["ostler who @last"]),
    (
        "logs",
        &[
            "ostler logs @last",
            "ostler logs -f -n 20 tests                    the last 20 lines, then what comes",
            "ostler logs --since 1h --timestamps tests     the last hour, with times",
            "ostler logs --grep \"error|warning\" -i tests   lines that match",
            "ostler logs --json -n 1 tests | jq .          the last thing said",
            "ostler logs --foreign 3f8e                    a conversation that ostler did not start",
        ],
    ),
    ("wait", &["ostler wait @last", "ostler wait --until turn --timeout 10m tests", "ostler wait --any k3v9 m2p4"]),
    (
        "search",
        &[
            "ostler search redis timeout                   messages with both words, the newest first",
            "ostler search \"connection refused\" -docker    a phrase, and a word that must not be there",
            "ostler search \"migrat*\" --in . --since 7d     this folder, the last week, any ending",
            "ostler search panic --role tool --json        what tools printed, as JSON",
        ],
    ),
    (
        "send",
        &[
            "ostler send tests \"also check Windows\"",
            "ostler send tests --now \"stop that\"",
            "ostler send tests --list",
        ],
    ),
    ("answer", &["ostler answer tests --allow", "ostler answer tests --deny --text \"not in production\""]),
    ("attach", &["ostler attach tests", "ostler attach --read-only tests"]),
    ("interrupt", &["ostler interrupt tests"]),
    ("stop", &["ostler stop tests", "ostler stop --after-turn tests"]),
    (
        "resume",
        &[
            "ostler resume tests                           open it",
            "ostler resume tests \"fix the warnings\"        one more turn",
            "ostler resume -d tests \"fix the warnings\"     in the background",
        ],
    ),
    (
        "adopt",
        &[
            "ostler adopt                                  pick one of the newest conversations",
            "ostler adopt 3f8e                             open it here, in the agent's own terminal",
            "ostler adopt 3f8e \"go on\"                     one turn, followed to its end",
            "ostler adopt -d 3f8e                          only record it; ostler resume continues it",
            "ostler adopt --takeover 3f8e \"go on\"          end the process that has it open first",
        ],
    ),
    ("fan", &["ostler fan tests \"look for races\" \"look for leaks\" \"look for wrong errors\""]),
    (
        "worker",
        &[
            "ostler worker --agents todo.md fix.md --check \"make test\"",
            "ostler worker -n 3 --branch main --agents todo.md",
        ],
    ),
    (
        "up",
        &[
            "ostler up --dry-run                           what would be done, in which order",
            "ostler up --watch                             run ostler.toml; a line for each job",
            "ostler up nightly.toml --only tests",
        ],
    ),
    (
        "review",
        &[
            "ostler review login --by {2}                  exit code 0 only when it passes",
            "ostler review login --prompt security.md --json",
        ],
    ),
    ("handover", &["ostler handover tests --to {2} \"go on with the tests\""]),
    ("fork", &["ostler fork tests \"try it with threads instead\""]),
    ("repair", &["ostler repair --dry-run tests", "ostler repair tests"]),
    ("checkpoints", &["ostler checkpoints tests", "ostler checkpoints restore tests 10m"]),
    (
        "diff",
        &[
            "ostler diff @last",
            "ostler diff --stat tests",
            "ostler diff tests --turn 3                    what the third turn changed",
        ],
    ),
    (
        "land",
        &[
            "ostler land login --check \"make test\"         as one commit on the branch that it came from",
            "ostler land login --into main --rebase        its commits one by one",
            "ostler land login --dry-run                   is there a conflict?",
        ],
    ),
    (
        "rewind",
        &[
            "ostler rewind tests --turn 3                  files, and a copy of the conversation",
            "ostler rewind tests --turn 0 --files          as they were at the start",
            "ostler rewind tests --undo                    the files as they were before that",
        ],
    ),
    (
        "compare",
        &[
            "ostler run --on {1},{2}:2 --name login \"fix the login\"   a group of three",
            "ostler compare login --check \"make test\"",
        ],
    ),
    ("pick", &["ostler pick login-{2}-2 --check \"make test\""]),
    ("bisect", &["ostler bisect tests --check \"make test\""]),
    (
        "worktree",
        &[
            "ostler worktree ls",
            "ostler worktree rm tests                      refused when work would be lost",
            "ostler worktree gc --dry-run                  which ones are finished and have nothing to lose",
        ],
    ),
    (
        "loop",
        &[
            "ostler loop {1} \"make the tests pass\" --until \"make test\"",
            "ostler loop {1} -f PROMPT.md --max 5 --budget 2 -d --name nightly",
            "ostler loop -w --same {1} \"fix the login\" --until \"npm test\" --timeout 1h",
            "ostler loop {1} --prompt-command ./next-task   a new prompt for each turn",
        ],
    ),
    ("recover", &["ostler recover", "ostler recover --dry-run"]),
    ("install-service", &["ostler install-service", "ostler install-service --uninstall"]),
    ("archive", &["ostler archive tests", "ostler archive --idle 7d"]),
    ("restore", &["ostler restore tests"]),
    ("purge", &["ostler purge tests", "ostler purge --archived --older-than 30d --dry-run"]),
    (
        "stats",
        &[
            "ostler stats                                  the last 30 days",
            "ostler stats --since 7d --by folder",
            "ostler stats --all --json | jq .total",
        ],
    ),
    ("doctor", &["ostler doctor", "ostler doctor --fix"]),
    ("notify", &["ostler notify test", "ostler notify clear"]),
    (
        "events",
        &[
            "ostler events -f --since now                  what happens from now on",
            "ostler events tests --since 1h | jq .what     one session, the last hour",
        ],
    ),
    ("upgrade", &["ostler upgrade"]),
    (
        "completions",
        &[
            "echo 'source <(ostler completions bash)' >> ~/.bashrc",
            "echo 'source <(ostler completions zsh)' >> ~/.zshrc",
            "ostler completions fish > ~/.config/fish/completions/ostler.fish",
        ],
    ),
    ("man", &["ostler man | man -l -", "ostler man ~/.local/share/man/man1"]),
    ("help", &["ostler help topics", "ostler help exit-codes", "ostler help run"]),
    ("rename", &["ostler rename k3v9 tests"]),
    ("du", &["ostler du                                     the largest sessions, and what is free"]),
];

/// A line with names of agents in the place of `{1}`, `{2}` and `{3}`, all of them for `{agents}`, and the arguments of
/// the first for `{arguments}`. A second column keeps its position.
fn with_agents(line: &str) -> String {
    if !line.contains('{') {
        return line.to_owned();
    }
    let agents: Vec<_> = installed::programs().collect();
    let mut names: Vec<(String, &str)> =
        agents.iter().enumerate().map(|(place, agent)| (format!("{{{}}}", place + 1), agent.name())).collect();
    let all = agents.iter().map(|agent| agent.name()).collect::<Vec<_>>().join(", ");
    names.push(("{agents}".to_owned(), &all));
    let arguments = agents.first().and_then(|agent| agent.example_arguments()).unwrap_or("ARGS");
    names.push(("{arguments}".to_owned(), arguments));
    let named = |text: &str| names.iter().fold(text.to_owned(), |text, (mark, name)| text.replace(mark, name));
    let indent = line.len() - line.trim_start().len();
    match line[indent..].find("   ") {
        Some(gap) => {
            let (first, rest) = line.split_at(indent + gap);
            let second = rest.trim_start();
            let column = line.len() - second.len();
            // A command that is too long for its column keeps a gap.
            let first = named(first);
            let column = column.max(first.len() + 2);
            format!("{first:<column$}{}", named(second))
        }
        None => named(line),
    }
}

/// The commands with their examples.
pub fn with_examples(mut tree: clap::Command) -> clap::Command {
    for (name, examples) in EXAMPLES {
        if tree.find_subcommand(name).is_none() {
            continue;
        }
        tree = tree.mut_subcommand(name, |command| {
            let more = command.get_after_help().map(|text| format!("\n\n{text}")).unwrap_or_default();
            let examples: Vec<String> = examples.iter().map(|line| format!("  {}", with_agents(line))).collect();
            command.after_help(format!("Examples:\n{}{more}", examples.join("\n")))
        });
    }
    tree
}

pub fn run(args: &Help) -> Result<Code> {
    let text = match args.topic.as_deref() {
        None => format!("{}\nTopics:\n{}", with_examples(Cli::command()).render_help(), topic_list()),
        Some("topics") => format!("Topics (ostler help TOPIC):\n{}", topic_list()),
        Some(name) => about(name)?,
    };
    say::text(&text)?;
    Ok(Code::Succeeded)
}

/// The topics and what they are about.
pub fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.iter().map(|(name, about, _)| (*name, *about))
}

fn topic_list() -> String {
    TOPICS.iter().map(|(name, about, _)| format!("  {name:<11}  {about}\n")).collect()
}

fn about(name: &str) -> Result<String> {
    if let Some((name, about, text)) = TOPICS.iter().find(|(topic, _, _)| *topic == name) {
        let keys = if *name == "config" { format!("{}\n", KEYS.join(", ")) } else { String::new() };
        let text: Vec<String> = text.split('\n').map(with_agents).collect();
        return Ok(format!("{name}: {about}\n\n{}{keys}", text.join("\n")));
    }
    let mut tree = with_examples(Cli::command());
    tree.build();
    let names: Vec<String> = tree.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    match tree.find_subcommand_mut(name) {
        Some(command) => Ok(command.render_help().to_string()),
        None => {
            let candidates = names.iter().map(String::as_str).chain(TOPICS.iter().map(|(topic, _, _)| *topic));
            let hint = match nearest(name, candidates) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("topics: {}; commands: ostler --help", TOPICS.map(|(topic, _, _)| topic).join(", ")),
            };
            Err(Failure::usage(format!("there is no help about {name:?}; {hint}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn check(command: &clap::Command, path: &str) {
        assert!(command.get_about().is_some(), "{path} does not say what it does");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{path}: {} has no help", argument.get_id());
        }
        for below in command.get_subcommands() {
            check(below, &format!("{path} {}", below.get_name()));
        }
    }

    #[test]
    fn every_command_and_argument_has_help_and_every_command_an_example_that_parses() {
        let tree = with_examples(Cli::command());
        check(&tree, "ostler");
        for command in tree.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = command.get_name();
            let found = EXAMPLES.iter().find(|(of, _)| *of == name);
            assert!(found.is_some_and(|(_, examples)| !examples.is_empty()), "{name} has no example");
        }
        for example in EXAMPLES.iter().filter(|(of, _)| tree.find_subcommand(of).is_some()).flat_map(|(_, all)| *all) {
            let words = crate::dashes::mark(words(example).into_iter().map(Into::into).collect());
            assert!(Cli::try_parse_from(&words).is_ok(), "{example}: {words:?}");
        }
    }

    /// The words of the `ostler` command in an example, as a shell would split it, without remarks and other programs.
    fn words(example: &str) -> Vec<String> {
        let start = example.find("ostler ").unwrap_or(0);
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        let line = example[start..].split("  ").next().unwrap_or_default();
        for letter in line.chars().chain([' ']) {
            match letter {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                '|' | ')' | '>' | '\'' if !quoted => break,
                other => word.push(other),
            }
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn lines_fit_into_a_terminal() {
        for (name, _, text) in TOPICS {
            for line in text.lines() {
                assert!(line.chars().count() <= 120, "{name}: {line}");
            }
        }
    }
}
