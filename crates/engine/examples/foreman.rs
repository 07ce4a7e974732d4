//! Launches a session per prompt, each in a thread of its own, allows what it asks, and stops it after its turn.
//!
//! `cargo run -p ostler-engine --example foreman -- target/debug/ostler demo "say one" "say two"`

use ostler_core::event::StopHow;
use ostler_engine::list::{Listed, list};
use ostler_engine::send::Answer;
use ostler_engine::stop::{Stop, Stopped};
use ostler_engine::wait::{Over, Until, Wait};
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
    println!("{}: launched", place.id);
    let turn = Wait { until: Until::Turn, any: false, through_questions: false, limit: None };
    loop {
        let (over, sessions) = engine.wait(vec![place.clone()], &turn)?;
        let Some(view) = sessions.into_iter().next().map(|session| session.view) else { break };
        match (over, view.asking) {
            (Over::Asks, Some(ask)) => {
                println!("{}: may use {}", place.id, ask.tool.as_deref().unwrap_or("a tool"));
                let answer = Answer { request: ask.request, allow: true, always: false, text: None };
                engine.answer(&place, answer)?;
            }
            (Over::Asks | Over::Reached | Over::TimeIsUp, _) => break,
        }
    }
    let stop = Stop { how: StopHow::AfterTurn, grace: Duration::from_secs(10), why: "done".to_owned() };
    if let Stopped::Ended(end) = engine.ask_to_stop(place, &stop)?.wait(&mut |notice| println!("{notice}"))? {
        let said = end.view.outcome.as_ref().and_then(|outcome| outcome.text.as_deref()).unwrap_or("nothing");
        println!("{}: {said:?}, {}", end.view.id, if end.is_saved() { "saved" } else { "not saved" });
    }
    Ok(())
}
