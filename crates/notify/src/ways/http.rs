//! Webhooks and ntfy. Only the status of the answer counts; the rest of the answer is not read.
//!
//! A redirect is not followed. A request that is signed for one address must not be sent to another one, and a POST
//! that is redirected becomes a GET with most servers. So a redirect is an error that names the new address.

use crate::message::Message;
use crate::settings::Http;
use ostler_core::moment::Moment;
use ring::hmac;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Response;

type Words<T> = Result<T, String>;

/// POSTs the message as JSON, signed.
pub fn webhook(to: &Http, message: &Message) -> Words<String> {
    let body = serde_json::to_vec(message).map_err(|error| error.to_string())?;
    let mut request = agent(to.timeout)
        .post(&to.url)
        .header("Content-Type", "application/json")
        .header("X-Ostler-Delivery", &message.id)
        .header("X-Ostler-Event", message.moment.word());
    if let Some(secret) = &to.secret {
        request = request.header("X-Hub-Signature-256", signature(&secret.read()?, &body));
    }
    judge(request.send(&body[..]), to)
}

/// POSTs the text to a topic.
pub fn ntfy(to: &Http, message: &Message) -> Words<String> {
    let mut request = agent(to.timeout)
        .post(&to.url)
        .header("Content-Type", "text/plain; charset=utf-8")
        .header("X-Ostler-Delivery", &message.id)
        .header("Title", header_text(&message.title))
        .header("Priority", priority(message.moment));
    if let Some(token) = &to.secret {
        request = request.header("Authorization", format!("Bearer {}", token.read()?));
    }
    // An empty text would be shown as "triggered".
    let text = if message.text.is_empty() { &message.title } else { &message.text };
    judge(request.send(text), to)
}

fn agent(timeout: Duration) -> Agent {
    Agent::config_builder()
        .timeout_global(Some(timeout))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("ostler/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn judge<T>(answer: Result<Response<T>, ureq::Error>, to: &Http) -> Words<String> {
    let answer = answer.map_err(|error| match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", to.timeout.as_secs_f64()),
        other => other.to_string(),
    })?;
    let status = answer.status();
    if status.is_success() {
        return Ok(format!("HTTP {}", status.as_u16()));
    }
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok());
    Err(match location.filter(|_| status.is_redirection()) {
        Some(location) => {
            let location = ostler_screen::printable(location);
            format!("HTTP {}: it is redirected to {location}, which has to be configured instead", status.as_u16())
        }
        None => format!("HTTP {}", status.as_u16()),
    })
}

/// The same signature as that of GitHub's webhooks, so that existing programs can check it.
fn signature(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let hex: String = hmac::sign(&key, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

fn priority(moment: Moment) -> &'static str {
    if is_urgent(moment) { "high" } else { "default" }
}

/// Whether a person has to do something.
pub fn is_urgent(moment: Moment) -> bool {
    match moment {
        Moment::Asking | Moment::Failed | Moment::Lost | Moment::Unproven | Moment::Budget => true,
        Moment::Turn | Moment::Limit | Moment::Ended | Moment::Unknown => false,
    }
}

/// A header is ASCII; other text is written as in mail headers (RFC 2047).
fn header_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let coded: String = text
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            other => format!("={other:02X}"),
        })
        .collect();
    format!("=?UTF-8?Q?{coded}?=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_others_calculate() {
        // The example of GitHub's documentation.
        assert_eq!(
            signature("It's a Secret to Everybody", b"Hello, World!"),
            "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
        );
    }

    #[test]
    fn text_in_a_header_is_ascii() {
        assert_eq!(header_text("fix it has ended"), "fix it has ended");
        assert_eq!(header_text("für"), "=?UTF-8?Q?f=C3=BCr?=");
    }
}
