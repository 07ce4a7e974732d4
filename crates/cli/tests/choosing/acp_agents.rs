//! Any program that speaks the Agent Client Protocol can be an agent, named on the command line or in config.toml. Here
//! it is a shell script, because a real agent would not misbehave when the test needs it.

use crate::harness;
use ostler_testkit::Harness;

/// Opens a conversation. In each turn it requests a file from ostler, and then says whether that was declined.
const SCRIPT: &str = r#"
while read -r line; do
    id=${line#*'"id":"'}; id=${id%%'"'*}
    case $line in
    *'"method":"initialize"'*) echo '{"id":"'$id'","result":{"protocolVersion":1}}' ;;
    *'"method":"session/new"'*) echo '{"id":"'$id'",'$1'}' ;;
    *'"method":"session/load"'*)
        echo '{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"old"}}}}'
        echo '{"id":"'$id'","result":null}' ;;
    *'"method":"_ostler/ready"'*) echo '{"id":"'$id'","error":{"code":-32601,"message":"Method not found"}}' ;;
    *'"method":"session/prompt"'*)
        echo '{"id":"f","method":"fs/read_text_file","params":{"path":"/etc/passwd"}}'
        read -r reply
        case $reply in *'"code":-32601'*'"id":"f"'*) said=declined ;; *) said=$reply ;; esac
        echo '{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"'$said'"}}}}'
        echo '{"id":"'$id'","result":{"stopReason":"end_turn"}}' ;;
    esac
done
"#;
const OPENS: &str = r#""result":{"sessionId":"native"}"#;
const REFUSES: &str = r#""error":{"code":-32000,"message":"Authentication required"}"#;

/// Configures a person's own agent that answers `session/new` with `opening`.
fn configure(harness: &Harness, opening: &str) {
    let script = harness.root().join("script");
    std::fs::write(&script, SCRIPT).unwrap();
    let command = format!("command = [\"sh\", {script:?}, {opening:?}]");
    harness.configure(&format!("default_agent = 'mine'\n[agents.mine]\n{command}\nprotocol = 'acp'\n"));
}

#[test]
fn a_configured_agent_gets_prompts_is_declined_what_ostler_cannot_do_and_is_resumed() {
    let harness = harness();
    configure(&harness, OPENS);
    let output = harness.run(&["run", "mine", "say something"]).exits(0);
    assert_eq!(output.stdout, "declined\n", "{output:?}");
    assert!(output.stderr.contains("1 turn"), "{output:?}");
    let shown = harness.run(&["show", "--json", "@last"]).exits(0).json();
    assert_eq!((&shown["agent"], &shown["native_id"]), (&"mine".into(), &"native".into()));
    let output = harness.run(&["resume", "@last", "and more"]).exits(0);
    assert_eq!(output.stdout, "declined\n", "the old answer is not printed again: {output:?}");
}

#[test]
fn the_default_agent_may_be_an_acp_agent() {
    let harness = harness();
    configure(&harness, OPENS);
    let output = harness.run(&["run", "say something"]).exits(0);
    assert_eq!(output.stdout, "declined\n", "{output:?}");
}

#[test]
fn an_agent_that_opens_no_conversation_fails_with_its_reason_and_nothing_is_left() {
    let harness = harness();
    configure(&harness, REFUSES);
    let output = harness.run(&["run", "--keep", "mine", "say something"]).exits(1);
    assert!(output.stderr.contains("Authentication required"), "{output:?}");
    let shown = harness.run(&["show", "--json", "@last"]).exits(0).json();
    let outcome = &shown["outcome"];
    assert_eq!(
        (&outcome["kind"], &outcome["source"], &outcome["turns"]),
        (&"failed".into(), &"agent".into(), &0.into())
    );
    harness.nothing_is_left();
}

#[test]
fn an_agent_that_prints_nothing_is_starting_and_has_an_alarm_until_it_is_stopped() {
    let harness = harness();
    harness.configure("answer_within = '1s'\n");
    let session = harness.detach(&["acp", "say something", "--", "sleep", "1000"]);
    assert_eq!(session.show().state, "starting");
    let view = session.until_look("there is an alarm", |view| view.alarm.is_some());
    assert_eq!(view.alarm.as_deref(), Some("sleep does not answer; is it an ACP agent?"));
    assert!(view.no_answer_s.is_some_and(|seconds| seconds >= 1), "{view:?}");
    session.stop();
    assert_eq!(session.show().outcome().kind, "stopped");
}

#[test]
fn what_the_protocol_does_not_have_is_refused_in_one_line() {
    let harness = harness();
    configure(&harness, OPENS);
    for (words, complaint) in [
        (vec!["run", "acp", "a prompt"], "needs a program"),
        (vec!["run", "-t", "acp", "--", "cat"], "has no terminal"),
        (vec!["run", "-t", "mine"], "has no terminal"),
        (vec!["run", "--model", "m", "mine", "a prompt"], "has no --model"),
        (vec!["run", "mine"], "needs a prompt or --keep"),
    ] {
        let output = harness.run(&words).exits(2);
        assert!(output.complaint().contains(complaint), "{words:?}: {}", output.complaint());
    }
    let listed = harness.run(&["agents", "--json"]).exits(0).json();
    let mine = listed.as_array().unwrap().iter().find(|agent| agent["name"] == "mine").cloned().unwrap_or_default();
    assert_eq!(
        (&mine["messages"], &mine["asks"], &mine["terminal"]),
        (&"one_process".into(), &true.into(), &false.into())
    );
}
