//! docs/schema describes the JSON that programs read. It is made from the types, and every change has to be announced:
//! run this test with UPDATE_SCHEMA=1, and read the difference as a user whose script reads that field.

#![expect(clippy::unwrap_used, reason = "a test that cannot read a file has failed")]

use ostler_core::comparison::Compared;
use ostler_core::outcome::Outcome;
use ostler_core::review::Review;
use ostler_core::view::View;
use ostler_engine::logs::ItemObject;
use ostler_engine::notify::Message;
use ostler_engine::search::Hit;
use ostler_engine::watch::Change;
use schemars::{JsonSchema, generate::SchemaSettings};
use std::path::Path;

/// The schema of JSON that is written, not of JSON that is read.
fn schema<T: JsonSchema>() -> String {
    let schema = SchemaSettings::default().for_serialize().into_generator().into_root_schema_for::<T>();
    format!("{}\n", serde_json::to_string_pretty(&schema).unwrap())
}

#[test]
fn what_programs_read_changes_only_when_that_is_announced() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let mut changed = Vec::new();
    for (name, made) in [
        ("session", schema::<View>()),
        ("outcome", schema::<Outcome>()),
        ("change", schema::<Change>()),
        ("item", schema::<ItemObject<'_>>()),
        ("hit", schema::<Hit>()),
        ("review", schema::<Review>()),
        ("notification", schema::<Message>()),
        ("compared", schema::<Compared>()),
    ] {
        let file = folder.join(format!("{name}.json"));
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &made).unwrap();
        }
        if std::fs::read_to_string(&file).unwrap_or_default() != made {
            changed.push(name);
        }
    }
    assert!(changed.is_empty(), "not as in docs/schema: {changed:?}; announce it with UPDATE_SCHEMA=1");
}
