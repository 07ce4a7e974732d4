//! The names of users, for when the environment does not have them: a service, a container, a cron job.

/// The name of this user, from the machine's own list. A directory service is not asked, because that may take seconds.
#[must_use]
pub fn name_of(uid: u32) -> Option<String> {
    named(&std::fs::read_to_string("/etc/passwd").ok()?, uid)
}

/// `name:password:uid:…`, one user a line.
fn named(list: &str, uid: u32) -> Option<String> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse::<u32>().ok()? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_user_is_found_by_number_and_broken_lines_are_passed_over() {
        let list = "# a note\n\n:x:7:\nroot:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(named(list, 0).as_deref(), Some("root"));
        assert_eq!(named(list, 1000).as_deref(), Some("ann"));
        assert_eq!(named(list, 7), None);
        assert_eq!(named(list, 1), None);
    }
}
