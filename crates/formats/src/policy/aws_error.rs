//! Errors of AWS, which names them in a header (`x-amzn-errortype`).

use chrono::DateTime;

use crate::domain::clock::Timestamp;
use crate::formats::error::UpstreamError;

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

/// The error with its name, if the body did not have one. `header`: the name, which an address may
/// follow after a colon.
pub fn named(error: UpstreamError, header: &str) -> UpstreamError {
    let name = header.split(':').next().unwrap_or_default().trim();
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).take(100).collect();
    let kind = error.kind.or_else(|| Some(name).filter(|name| !name.is_empty()));
    UpstreamError { kind, ..error }
}

/// Whether an error of this name says that the keys are not valid any more.
pub fn refuses_keys(header: &str) -> bool {
    let name = header.split(':').next().unwrap_or_default().trim();
    OF_KEYS.contains(&name)
}

/// What to say of an error that the gateway's clock is the reason of. `date`: the header of the
/// answer.
pub fn clock_skew(
    status: u16,
    error: &UpstreamError,
    date: Option<&str>,
    now: Timestamp,
) -> Option<String> {
    if !matches!(status, 400 | 401 | 403) {
        return None;
    }
    let is_signature = OF_SIGNATURE.iter().any(|name| error.is(name));
    let says_time = ["Signature expired", "Signature not yet current"]
        .iter()
        .any(|start| error.message.starts_with(start));
    let theirs = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
    let ahead = theirs.map(|theirs| now.since(Timestamp(theirs.timestamp_millis())) / 1000);
    let by = match ahead {
        Some(ahead) if ahead > MOST_SKEW => format!("{ahead} s ahead of"),
        Some(ahead) if ahead < -MOST_SKEW => format!("{} s behind", -ahead),
        _ if is_signature && says_time => "not that of".to_owned(),
        _ => return None,
    };
    Some(format!(
        "the clock of the gateway is {by} AWS's, which accepts a difference of 5 minutes ({})",
        error.message
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_name_of_its_header() {
        let of = |kind: Option<&str>, header| {
            let error = UpstreamError { kind: kind.map(str::to_owned), ..Default::default() };
            named(error, header).kind
        };
        let name = "ThrottlingException:http://internal.amazon.com/coral/";
        assert_eq!(of(None, name).as_deref(), Some("ThrottlingException"));
        assert_eq!(of(Some("own"), name).as_deref(), Some("own"));
        assert_eq!(of(None, " "), None);
        assert!(refuses_keys("ExpiredTokenException:x") && !refuses_keys("AccessDeniedException"));
    }

    #[test]
    fn a_clock_that_differs_is_named() {
        let now = Timestamp(1_800_000_000_000);
        let skew = |status, kind: &str, message: &str, date: Option<&str>| {
            let (kind, message) = (Some(kind.to_owned()), message.to_owned());
            clock_skew(status, &UpstreamError { kind, code: None, message }, date, now)
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
