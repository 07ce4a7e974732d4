//! docs/schema/up.json describes ostler.toml, for editors and programs that write one. It is made from the types, and a
//! change of it has to be announced: run this test with UPDATE_SCHEMA=1, and read the difference as a person whose file
//! has that key would.

#![expect(clippy::unwrap_used, reason = "a test that cannot read a file has failed")]

use ostler_jobs::up::file::File;
use schemars::generate::SchemaSettings;
use std::path::Path;

#[test]
fn the_description_of_the_file_changes_only_when_that_is_announced() {
    let schema = SchemaSettings::default().for_deserialize().into_generator().into_root_schema_for::<File>();
    let made = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/up.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), made, "announce it with UPDATE_SCHEMA=1");
}
