//! The notification service of the desktop (org.freedesktop.Notifications), over the D-Bus session bus.

use super::http::is_urgent;
use crate::message::Message;
use ostler_sys::dbus::{Connection, Method, Reader, Writer};
use std::time::Duration;

/// The time limit; a service that is started on demand may need a moment.
const PATIENCE: Duration = Duration::from_secs(10);

const CRITICAL: u8 = 2;
const NORMAL: u8 = 1;

/// Asks the service to show the message.
pub fn send(message: &Message) -> Result<String, String> {
    let bus = address();
    let failed = |error: std::io::Error| format!("the notification service on {bus}: {error}");
    let mut connection = Connection::open_bus(&bus, PATIENCE).map_err(failed)?;
    let method = Method {
        destination: "org.freedesktop.Notifications",
        path: "/org/freedesktop/Notifications",
        interface: "org.freedesktop.Notifications",
        member: "Notify",
    };
    let shown = connection.ask(&method, "susssasa{sv}i", &arguments(message)).map_err(failed)?;
    let number = Reader::new(&shown).u32().map_err(failed)?;
    Ok(format!("shown as notification {number}"))
}

/// The address of the session bus: the one in the environment, else the usual path.
fn address() -> String {
    let named = std::env::var("DBUS_SESSION_BUS_ADDRESS").ok().filter(|address| !address.is_empty());
    named.unwrap_or_else(|| format!("unix:path=/run/user/{}/bus", rustix::process::getuid().as_raw()))
}

fn arguments(message: &Message) -> Writer {
    let mut body = Writer::default();
    body.string("ostler");
    body.u32(0); // replaces no other notification
    body.string(""); // no icon
    body.string(&message.title);
    body.string(&escaped(&message.text));
    body.array(4, |_| {}); // no actions
    body.array(8, |hints| {
        let urgency = if is_urgent(message.moment) { CRITICAL } else { NORMAL };
        hints.property("urgency", "y", |value| value.bytes.push(urgency));
    });
    body.u32(u32::MAX); // -1: the service decides how long
    body
}

/// Escapes the text, because a service may interpret it as markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_markup() {
        assert_eq!(escaped("<b>a & b</b>"), "&lt;b&gt;a &amp; b&lt;/b&gt;");
    }
}
