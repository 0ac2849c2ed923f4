//! Errors of AWS, which names them in a header (`x-amzn-errortype`).

use chrono::DateTime;

use super::error_reply::ErrorReply;
use crate::domain::clock::Timestamp;

/// The difference of clocks that AWS accepts, in seconds.
const MOST_SKEW: i64 = 300;

/// Errors of the keys that a request was signed with: others may be accepted.
const OF_KEYS: [&str; 4] = [
    "ExpiredTokenException",
    "ExpiredToken",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
];
/// Errors of the signature, which may be those of a clock.
const OF_SIGNATURE: [&str; 4] = [
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "RequestTimeTooSkewed",
    "RequestExpired",
];

/// Whether an error of this name says that the keys are not valid any more.
pub fn refuses_keys(header: &str) -> bool {
    let name = header.split(':').next().unwrap_or_default().trim();
    OF_KEYS.contains(&name)
}

/// What to say of an error that the gateway's clock is the reason of. `date`: the header of the
/// answer.
pub fn clock_skew(reply: &ErrorReply<'_>, date: Option<&str>, now: Timestamp) -> Option<String> {
    if !matches!(reply.status, 400 | 401 | 403) {
        return None;
    }
    let message = reply.message.unwrap_or_default();
    let is_signature = reply.kind.is_some_and(|kind| OF_SIGNATURE.contains(&kind));
    let says_time = ["Signature expired", "Signature not yet current"]
        .iter()
        .any(|start| message.starts_with(start));
    let theirs = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    let ahead = theirs.map(|theirs| now.since(Timestamp(theirs.timestamp_millis())) / 1000);
    let by = match ahead {
        Some(ahead) if ahead > MOST_SKEW => format!("{ahead} s ahead of"),
        Some(ahead) if ahead < -MOST_SKEW => format!("{} s behind", -ahead),
        _ if is_signature && says_time => "not that of".to_owned(),
        _ => return None,
    };
    Some(format!(
        "the clock of the gateway is {by} AWS's, which accepts a difference of 5 minutes ({message})"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_not_valid_are_known_by_the_header() {
        assert!(refuses_keys("ExpiredTokenException:x") && !refuses_keys("AccessDeniedException"));
    }

    #[test]
    fn a_clock_that_differs_is_named() {
        let now = Timestamp(1_800_000_000_000);
        let skew = |status, kind: &str, message: &str, date: Option<&str>| {
            let (kind, message) = (Some(kind), Some(message));
            let reply = ErrorReply { status, kind, message, ..ErrorReply::default() };
            clock_skew(&reply, date, now)
        };
        let date = |seconds: i64| {
            let date = DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap();
            date.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
        };
        let expired = "Signature expired: 20270115T080000Z is now earlier than 20270115T081000Z";
        for (seconds, says) in [
            (-301, Some("is 301 s ahead of AWS's")),
            (400, Some("is 400 s behind AWS's")),
            (299, None),
        ] {
            let said = skew(403, "AccessDeniedException", "no", Some(&date(seconds)));
            assert_eq!(said.is_some(), says.is_some(), "{seconds}");
            let contains = |said: &str| said.contains(says.unwrap()) && said.contains("(no)");
            assert!(said.is_none_or(|said| contains(&said)), "{seconds}");
        }
        let said = skew(403, "InvalidSignatureException", expired, None).unwrap();
        assert!(said.contains("is not that of AWS's") && said.contains(expired), "{said}");
        for (status, kind, message, date) in [
            (403, "InvalidSignatureException", "The signature does not match", None),
            (403, "AccessDeniedException", expired, Some("no date")),
            (429, "ThrottlingException", "slow", Some(&*date(400))),
        ] {
            assert_eq!(skew(status, kind, message, date), None, "{kind}");
        }
    }
}
