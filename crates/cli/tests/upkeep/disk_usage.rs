//! `du` prints what each session uses on the disk, the largest first, and the free space.

use crate::harness;

#[test]
fn the_largest_session_comes_first_and_dropped_output_uses_nothing() {
    let harness = harness();
    assert!(harness.run(&["du"]).exits(0).stdout.contains("total: 0 sessions"));
    harness.configure("output_limit = \"1MiB\"\nmin_free_space = \"1KiB\"\n");
    let print = |bytes: &str, name: &str| {
        let words = ["run", "--name", name, "--", &harness.misbehave(), &format!("print={bytes}")].map(str::to_owned);
        harness.run(&words.each_ref().map(String::as_str)).exits(0);
    };
    print("300000", "small");
    print("900000", "put-away");
    print("9000000", "flood");
    harness.run(&["archive", "put-away"]).exits(0);

    let found = harness.run(&["du", "--json"]).exits(0).json();
    let sessions = found["sessions"].as_array().unwrap();
    let names: Vec<&str> = sessions.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names[2], "small", "{found}");
    let size =
        |name: &str, what: &str| sessions.iter().find(|one| one["name"] == name).unwrap()[what].as_u64().unwrap();
    assert!((900_000..1_000_000).contains(&size("put-away", "output")), "{found}");
    assert!((500_000..1_200_000).contains(&size("flood", "output")), "what was dropped counts: {found}");
    assert_eq!(sessions.iter().filter(|one| one["archived"] == true).count(), 1);
    let sum: u64 = names.iter().map(|name| size(name, "bytes")).sum::<u64>() + found["other"].as_u64().unwrap();
    assert_eq!(found["total"].as_u64(), Some(sum));
    assert_eq!(found["min_free_space"], 1024);
    assert!(found["disk_free"].as_u64().unwrap() > 0);

    let text = harness.run(&["du"]).exits(0).stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].trim_start().starts_with("SIZE") && lines[0].ends_with("SESSION"), "{text}");
    let ends = |end: &str| lines.iter().position(|line| line.ends_with(end)).unwrap();
    assert!(ends("put-away (archived)") < ends("small") && ends("flood") < ends("small"), "{text}");
    assert!(lines[lines.len() - 2].ends_with("total: 3 sessions, 1 archived"), "{text}");
    assert!(lines[lines.len() - 1].contains("(min_free_space 1.0 KiB)"), "{text}");
    let one = harness.run(&["du", "small"]).exits(0).stdout;
    assert!(one.contains("small") && !one.contains("flood"), "{one}");
    harness.run(&["du", "nobody"]).exits(3);
}
