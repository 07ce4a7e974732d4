//! An agent of an older version, which does not have an option that ostler uses.

use crate::{harness_with, program};
use std::os::unix::net::UnixListener;

/// Prints its arguments and keeps running.
const CODEX: &str = "if [ \"$1\" = --help ]; then echo \"$OPTIONS\"; else echo arguments \"$@\"; exec sleep 600; fi";

#[test]
fn a_codex_without_the_option_no_daemon_is_kept_only_where_no_shared_server_runs() {
    let (mut harness, folder) = harness_with(&[]);
    program(&harness, &folder, "codex", &CODEX.replace("$OPTIONS", "  --search  Searches"));
    let home = harness.root().join("codex");
    std::fs::create_dir_all(home.join("app-server-control")).unwrap();
    harness.set("CODEX_HOME", &home);
    let session = harness.detach(&["-t", "codex", "--", "--search"]);
    session.until_printed("arguments --search");
    harness.run(&["stop", session.id()]).exits(0);

    let server = UnixListener::bind(home.join("app-server-control/app-server-control.sock")).unwrap();
    let refused = harness.run(&["run", "-d", "-t", "codex"]).exits(2);
    let words = refused.complaint();
    assert!(words.contains("ostler cannot stop it") && words.contains("npm install -g @openai/codex"), "{words}");
    assert_eq!(harness.ls().len(), 1, "nothing was started");

    // A newer codex works in its own process, also when a server runs and when it gets other options.
    program(&harness, &folder, "codex", &CODEX.replace("$OPTIONS", "  --no-daemon  Without the server"));
    let session = harness.detach(&["-t", "codex", "--", "--no-daemon", "--search"]);
    session.until_printed("arguments --no-daemon --search");
    let shown = harness.run(&["show", "--json", session.id()]).exits(0).json();
    assert!(shown["in_force"].as_str().unwrap().contains("its own process"), "{shown}");
    for words in [&["--remote", "unix://"][..], &["agents"]] {
        let refused = harness.run(&[&["run", "-d", "-t", "codex", "--"], words].concat()).exits(2);
        assert!(refused.complaint().contains("ostler cannot stop"), "{refused:?}");
    }
    drop(server);
}
