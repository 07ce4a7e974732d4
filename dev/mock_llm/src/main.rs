//! Runs the server by hand: prints its address, then every request as a line of JSON, until its stdin ends.
//!
//! `cargo run -p ostler-mock-llm [PORT]`, and in another terminal an agent whose base URL is that address.

use ostler_mock_llm::{Kind, Server};
use serde_json::json;
use std::io::{self, Read, Write};
use std::time::Duration;

/// How long one wait for the next request is. After a wait without a request the next wait begins.
const A_WHILE: Duration = Duration::from_secs(3600);

fn main() -> io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let server = Server::on_port(port)?;
    println!("{}", server.url());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Read only to notice the end.
            let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
            std::process::exit(0);
        });
        show(&server)
    })
}

fn show(server: &Server) -> io::Result<()> {
    let mut shown = 0;
    loop {
        let Ok(requests) = server.wait_for_within(A_WHILE, |requests| requests.len() > shown) else { continue };
        for request in requests.iter().skip(shown) {
            let kind = match &request.kind {
                Kind::Turn(turn) => {
                    json!({"turn": turn.user_messages, "answers": turn.answers, "in": turn.conversation})
                }
                Kind::Background(_) => json!("background"),
                Kind::Other => json!("other"),
            };
            let line = json!({
                "at_ms": request.arrived.as_millis() as u64, "method": request.method, "path": request.path,
                "kind": kind, "headers": request.headers, "body": request.body,
            });
            writeln!(io::stdout(), "{line}")?;
        }
        shown = requests.len();
    }
}
