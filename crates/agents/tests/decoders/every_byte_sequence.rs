//! Cut lines, garbage, NUL, half a character, lines without end: nothing panics, what is intact is interpreted, and it
//! makes no difference how the bytes are split.

use crate::samples::{Sample, all};
use ostler_agents::lines::LINE_LIMIT;
use ostler_core::fact::Fact;
use proptest::prelude::*;

/// One way to damage a stream.
#[derive(Clone, Debug)]
enum Damage {
    Insert { at: prop::sample::Index, bytes: Vec<u8> },
    Cut { at: prop::sample::Index, length: usize },
    Replace { at: prop::sample::Index, byte: u8 },
}

fn damage() -> impl Strategy<Value = Damage> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..20),
        Just(vec![0]),
        Just(b"\n".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\\ud83d".to_vec()),
        Just(vec![0xf0, 0x9f]),
        Just(b"[".repeat(500)),
        Just(b"{\"type\":".repeat(200)),
        Just(b"1e999".to_vec()),
    ];
    prop_oneof![
        (any::<prop::sample::Index>(), bytes).prop_map(|(at, bytes)| Damage::Insert { at, bytes }),
        (any::<prop::sample::Index>(), 1..200usize).prop_map(|(at, length)| Damage::Cut { at, length }),
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace { at, byte }),
    ]
}

fn damaged(sample: &Sample, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = sample.output.as_bytes().to_vec();
    for damage in damages {
        match damage {
            Damage::Insert { at, bytes: more } => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, more.iter().copied());
            }
            Damage::Cut { at, length } => {
                let at = at.index(bytes.len() + 1);
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            Damage::Replace { at, byte } if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Replace { .. } => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_output_gives_the_same_facts_however_it_arrives(damages in prop::collection::vec(damage(), 0..8), cut in 1..600usize) {
        for sample in all() {
            let bytes = damaged(&sample, &damages);
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(sample.facts(&[&bytes]), sample.facts(&pieces));
        }
    }

    #[test]
    fn any_bytes_at_all_are_survived_and_what_follows_is_understood(noise in prop::collection::vec(any::<u8>(), 0..400)) {
        for sample in all() {
            let lines = [&noise, &b"\n"[..], sample.output.as_bytes()].concat();
            let facts = sample.facts(&[&lines]);
            prop_assert!(facts.contains(&Fact::Said { text: "all done".to_owned() }), "{:?}", facts);
        }
    }

    #[test]
    fn a_line_cut_anywhere_costs_that_line_alone(at in any::<prop::sample::Index>()) {
        for sample in all() {
            let whole = sample.output.as_bytes();
            let torn = [&whole[..at.index(whole.len())], b"\n", whole].concat();
            let facts = sample.facts(&[&torn]);
            prop_assert!(facts.contains(&Fact::Said { text: "all done".to_owned() }), "{:?}", facts);
        }
    }
}

#[test]
fn half_a_character_costs_that_character_alone() {
    for sample in all() {
        for (half, shown) in
            [(&b"\\ud83d"[..], "\u{fffd} done"), (&b"\xf0\x9f"[..], "\u{fffd} done"), (b"\\u0000", "\0 done")]
        {
            let parts: Vec<&[u8]> = sample.output.split("all done").map(str::as_bytes).collect();
            let bytes = parts.join(&[half, b" done"].concat()[..]);
            let facts = sample.facts(&[&bytes]);
            assert!(facts.contains(&Fact::Said { text: shown.to_owned() }), "{}: {facts:?}", sample.agent.name());
        }
    }
}

#[test]
fn a_line_too_long_to_read_is_counted_and_what_follows_is_understood() {
    for sample in all() {
        let piece = vec![b'x'; 1 << 20];
        let count = 2 * LINE_LIMIT / piece.len();
        let mut pieces: Vec<&[u8]> = vec![b"{\"type\":\"assistant\",\"text\":\""];
        pieces.extend(std::iter::repeat_n(&piece[..], count));
        pieces.extend([b"\"}\n", sample.output.as_bytes()]);
        let facts = sample.facts(&pieces);
        let bytes = (28 + count * piece.len() + 2) as u64;
        assert_eq!(facts.first(), Some(&Fact::LineTooLong { bytes }), "{}", sample.agent.name());
        assert!(facts.contains(&Fact::Said { text: "all done".to_owned() }));
    }
}
