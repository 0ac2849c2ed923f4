//! Signature Version 4 of AWS, in its header form: pure.
//!
//! `ring` does the cryptography. See docs/decisions/46-aws-signatures-with-ring.md.

use chrono::DateTime;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use ring::hmac::{HMAC_SHA256, Key, Tag};

use super::AwsKeys;
use crate::domain::clock::Timestamp;

/// Characters that are not escaped; in a path also the slash.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const PATH: &AsciiSet = &QUERY.remove(b'/');

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signable<'a> {
    pub method: &'a str,
    /// Path and query, as they are sent.
    pub target: &'a str,
    /// The signed headers: names in lower case, in their order.
    pub headers: &'a [(&'a str, &'a str)],
    /// SHA-256 of the body, in hexadecimal digits.
    pub body: &'a str,
    pub region: &'a str,
    pub service: &'a str,
}

/// The time of a signature, as the header `x-amz-date` has it.
pub(super) fn date(now: Timestamp) -> String {
    let now = DateTime::from_timestamp_millis(now.0).unwrap_or_default();
    now.format("%Y%m%dT%H%M%SZ").to_string()
}

/// The value of the `Authorization` header. `date`: as [`date`] writes it.
pub(super) fn authorization(keys: &AwsKeys, date: &str, what: &Signable<'_>) -> String {
    let day = date.get(..8).unwrap_or_default();
    let scope = format!("{day}/{}/{}/aws4_request", what.region, what.service);
    let canonical = sha256_hex(&[canonical(what).as_bytes()]);
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{canonical}");
    let first = hmac(format!("AWS4{}", keys.secret.expose()).as_bytes(), day);
    let rest = [what.region, what.service, "aws4_request"];
    let key = rest.iter().fold(first, |tag, part| hmac(tag.as_ref(), part));
    let signature = hex::encode(hmac(key.as_ref(), &text));
    let (id, signed) = (&keys.id, signed_names(what));
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={signed}, Signature={signature}"
    )
}

fn hmac(key: &[u8], text: &str) -> Tag {
    ring::hmac::sign(&Key::new(HMAC_SHA256, key), text.as_bytes())
}

/// SHA-256 of these pieces together, in hexadecimal digits.
pub(super) fn sha256_hex(pieces: &[impl AsRef<[u8]>]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    pieces.iter().for_each(|piece| context.update(piece.as_ref()));
    hex::encode(context.finish())
}

fn signed_names(what: &Signable<'_>) -> String {
    what.headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";")
}

/// The request in the form whose hash is signed. The path is encoded once more than it is sent.
fn canonical(what: &Signable<'_>) -> String {
    let (path, query) = what.target.split_once('?').unwrap_or((what.target, ""));
    let mut parameters: Vec<(String, String)> =
        query.split('&').filter(|one| !one.is_empty()).map(parameter).collect();
    parameters.sort();
    let query: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let headers = what.headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim()));
    format!(
        "{}\n{}\n{}\n{}\n{}\n{}",
        what.method,
        utf8_percent_encode(path, PATH),
        query.join("&"),
        headers.collect::<String>(),
        signed_names(what),
        what.body
    )
}

fn parameter(one: &str) -> (String, String) {
    let encoded = |text: &str| {
        let bytes: Vec<u8> = percent_decode_str(text).collect();
        percent_encoding::percent_encode(&bytes, QUERY).to_string()
    };
    let (name, value) = one.split_once('=').unwrap_or((one, ""));
    (encoded(name), encoded(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::secret::Secret;

    fn keys() -> AwsKeys {
        let secret = Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        AwsKeys { id: "AKIDEXAMPLE".to_owned(), secret, token: None, expires_at: None }
    }

    fn signature(date: &str, what: &Signable<'_>) -> String {
        let value = authorization(&keys(), date, what);
        value.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// `get-vanilla` of AWS' test suite.
    #[test]
    fn the_vendors_first_vector() {
        let date = date(Timestamp(1_440_938_160_000));
        assert_eq!(date, "20150830T123600Z");
        let headers = [("host", "example.amazonaws.com"), ("x-amz-date", &*date)];
        let what = Signable {
            method: "GET",
            target: "/",
            headers: &headers,
            body: &sha256_hex(&[""]),
            region: "us-east-1",
            service: "service",
        };
        let wanted = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
        assert_eq!(signature(&date, &what), wanted);
        let whole = format!(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, Signature={wanted}"
        );
        assert_eq!(authorization(&keys(), &date, &what), whole);
    }

    /// The model's name is escaped once in the path that is sent, and twice in what is signed.
    #[test]
    fn a_path_with_escapes_is_encoded_once_more() {
        let body = r#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#;
        let (body, date) = (sha256_hex(&[body]), "20260830T123600Z");
        assert_eq!(body, "f4d78fc2785b44789662c0e3bea21fc5e8f54ca69b232186b3e5d1bb74e3ade7");
        let headers = [
            ("content-type", "application/json"),
            ("host", "bedrock-runtime.us-east-1.amazonaws.com"),
            ("x-amz-content-sha256", &*body),
            ("x-amz-date", date),
        ];
        let what = Signable {
            method: "POST",
            target: "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke",
            headers: &headers,
            body: &body,
            region: "us-east-1",
            service: "bedrock",
        };
        let hash = "b640cbfe00284bd5969616ec1107c3f86985e6414cc014c5fd9e977a475fbce8";
        assert_eq!(sha256_hex(&[canonical(&what)]), hash);
        let wanted = "07ec2967ffd71412aebaf392be45e28d4063b69bba67c8a9a880edb99559c65a";
        assert_eq!(signature(date, &what), wanted);
    }

    #[test]
    fn parameters_are_sorted_and_encoded() {
        let what = Signable {
            method: "GET",
            target: "/a?b=2&a=%7e%40&c&b=1",
            headers: &[("host", "h")],
            body: "x",
            region: "",
            service: "",
        };
        assert_eq!(canonical(&what), "GET\n/a\na=~%40&b=1&b=2&c=\nhost:h\n\nhost\nx");
    }
}
