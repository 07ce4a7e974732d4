//! Launches a session per prompt, each in a thread of its own. Prints what each agent says, allows what it asks for,
//! and stops the session after its turn.
//!
//! `cargo run -p ostler-engine --example foreman -- target/debug/ostler demo "say one" "say two"`

use ostler_engine::content::{Item, Runs};
use ostler_engine::list::{Listed, list};
use ostler_engine::send::Answer;
use ostler_engine::session_watch::SessionWatch;
use ostler_engine::stop::{Stop, StopHow, Stopped};
use ostler_engine::view::Fact;
use ostler_engine::{Engine, Environment, Launch, Result};
use std::time::Duration;

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let (Some(ostler), Some(agent)) = (words.next(), words.next()) else {
        eprintln!("usage: foreman OSTLER AGENT PROMPT…");
        return Ok(());
    };
    let engine = Engine::embedded(Environment::of_process(), ostler.into())?;
    for listed in list(&engine, false, |one| one)? {
        match listed {
            Listed::Good(view) => println!("{}: {} is there already", view.id, view.agent),
            Listed::Bad(damaged) => println!("{}: damaged", damaged.id),
        }
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = words.map(|prompt| scope.spawn(|| oversee(&engine, &agent, prompt))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or(Ok(())))
    })
}

/// One session from its launch to its end.
fn oversee(engine: &Engine, agent: &str, prompt: String) -> Result<()> {
    let request = Launch { agent: agent.to_owned(), prompt: Some(prompt), keep: true, ..Launch::default() };
    let place = engine.launch(request, &mut |notice| println!("{notice}"))?.place;
    let (mut watch, mut conversation) = (SessionWatch::new(&place)?, engine.conversation(&place, Runs::All)?);
    let mut works = true;
    while works && !engine.view(&place)?.ended {
        for item in conversation.new_items()? {
            match item {
                Item::Agent(Fact::Said { text }) => println!("{}: {text}", place.id),
                Item::Agent(Fact::Asked(ask)) => engine.answer(&place, Answer::allow(&ask))?,
                Item::Agent(Fact::TurnEnded(_)) => works = false,
                Item::Told { .. } | Item::Answered { .. } | Item::Agent(_) => {}
            }
        }
        if works {
            watch.wait(&[])?;
        }
    }
    let stop = Stop { how: StopHow::AfterTurn, grace: Duration::from_secs(10), why: "done".to_owned() };
    if let Stopped::Ended(end) = engine.ask_to_stop(place, &stop)?.wait(&mut |notice| println!("{notice}"))? {
        println!("{}: {}", end.view.id, if end.is_saved() { "saved" } else { "not saved" });
    }
    Ok(())
}
