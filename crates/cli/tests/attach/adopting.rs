//! `ostler adopt` without an argument: a person picks one of the newest conversations. Conversations that ostler keeps
//! already are not offered.

use crate::harness;
use crate::person::{Person, SIZE};
use serde_json::json;

#[test]
fn the_newest_conversations_are_offered_and_one_of_them_is_adopted() {
    let mut harness = harness();
    let bin = harness.root().join("bin");
    std::fs::create_dir(&bin).unwrap();
    harness.write_program(&bin.join("claude"), "#!/bin/sh\n");
    let path = harness.variable("PATH").unwrap();
    harness.set("PATH", format!("{}:{}", bin.display(), path.to_str().unwrap()));
    let work = harness.root().join("work");
    let project: String =
        work.to_str().unwrap().chars().map(|one| if one.is_ascii_alphanumeric() { one } else { '-' }).collect();
    let folder = harness.root().join("home/.claude/projects").join(project);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::create_dir(&work).unwrap();
    for (number, prompt) in ["fix the parser", "write the docs"].iter().enumerate() {
        let id = format!("{number}f8e0c1a-5a4e-4e53-9d0b-6a3f6c1f2b77");
        let message = json!({"role": "user", "content": prompt});
        let line =
            json!({"type": "user", "uuid": "a", "parentUuid": null, "sessionId": id, "cwd": work, "message": message});
        std::fs::write(folder.join(format!("{id}.jsonl")), format!("{line}\n")).unwrap();
    }

    let mut person = Person::runs(&harness, SIZE, &["adopt", "-d"]);
    person.sees("adopt which one?");
    assert!(person.shows("0f8e0c1a") && person.shows("fix the parser") && person.shows("write the docs"));
    person.types(b"\x1b");
    person.is_left_with(2);
    assert!(harness.ls().is_empty(), "nothing was done");

    let mut person = Person::runs(&harness, SIZE, &["adopt", "-d", "--name", "docs"]);
    person.sees("adopt which one?");
    person.types(b"docs\r");
    person.is_left_with(0);
    person.sees("adopted as ");
    let shown = harness.run(&["show", "--json", "docs"]).exits(0).json();
    assert_eq!((&shown["title"], &shown["prompt"]), (&json!("docs"), &json!("write the docs")));
    assert!(person.has_an_ordinary_terminal());

    let mut person = Person::runs(&harness, SIZE, &["adopt", "-d"]);
    person.sees("adopt which one?");
    assert!(person.shows("fix the parser") && !person.shows("write the docs"), "what is kept is not offered");
    person.types(b"\x03");
    person.is_left_with(2);
}
