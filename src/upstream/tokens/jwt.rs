//! JSON Web Tokens: signed assertions, and tokens that other systems issued for this machine.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RsaEncoding;
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use crate::domain::secret::Secret;

/// Bytes of a file with a token.
const MAX_FILE: u64 = 64 * 1024;

/// An RSA key in PEM (PKCS #8).
///
/// # Errors
/// It is not one.
pub(super) fn rsa_key(pem: &Secret) -> Result<KeyPair, String> {
    let unreadable = || "private_key must be an RSA key in PEM (PKCS #8)".to_owned();
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.expose().as_bytes());
    let der = der.map_err(|_| unreadable())?;
    KeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unreadable())
}

/// A signed token.
///
/// # Errors
/// It could not be signed.
pub(super) fn signed(
    key: &KeyPair,
    encoding: &'static dyn RsaEncoding,
    header: &Value,
    claims: &Value,
) -> Result<String, String> {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(encoding, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| "the assertion could not be signed")?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A file with a token: an absolute path.
///
/// # Errors
/// It is not absolute.
pub(super) fn file(path: String) -> Result<String, String> {
    let is_absolute = Path::new(&path).is_absolute();
    if is_absolute { Ok(path) } else { Err("the path of a token file must be absolute".to_owned()) }
}

/// The content of a file with a token. It is read for each exchange: such tokens are short-lived.
///
/// # Errors
/// It cannot be read, or is too large. The text has the path, not the content.
pub(in crate::upstream) async fn read(path: &str) -> Result<String, String> {
    let fault = |error: std::io::Error| format!("the file {path} cannot be read: {error}");
    // A pipe or a device could hold the reader for ever.
    if !tokio::fs::metadata(path).await.map_err(fault)?.is_file() {
        return Err(format!("the file {path} is not a file"));
    }
    let file = tokio::fs::File::open(path).await.map_err(fault)?;
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).await.map_err(fault)?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("the file {path} is larger than {MAX_FILE} bytes"));
    }
    Ok(text)
}

/// The token in a text. Only a JSON Web Token leaves the machine: an administrator can name any
/// file that the gateway can read, and any address.
///
/// # Errors
/// It is not one. The text has no part of it.
pub(super) fn only_token(text: &str, of: &str) -> Result<String, String> {
    let text = text.trim();
    let parts: Vec<&str> = text.split('.').collect();
    let is_object = |part: &&str| {
        let json = URL_SAFE_NO_PAD.decode(part).unwrap_or_default();
        serde_json::from_slice::<Value>(&json).is_ok_and(|json| json.is_object())
    };
    let is_token = parts.len() == 3
        && parts[..2].iter().all(is_object)
        && URL_SAFE_NO_PAD.decode(parts[2]).is_ok_and(|signature| !signature.is_empty());
    if is_token { Ok(text.to_owned()) } else { Err(format!("{of} holds no JSON Web Token")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_token_is_taken() {
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";
        assert_eq!(only_token(&format!(" {token}\n"), "it").as_deref(), Ok(token));
        for text in [
            "",
            "root:x:0:0:root:/root:/bin/sh",
            "a.b.c",
            "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.",
            "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln.c2ln",
            "c2ln.c2ln.c2ln",
            "-----BEGIN PRIVATE KEY-----",
        ] {
            let refused = only_token(text, "it").unwrap_err();
            assert_eq!(refused, "it holds no JSON Web Token", "{text}");
        }
    }

    #[tokio::test]
    async fn files_are_absolute_regular_and_bounded() {
        assert!(file("token".to_owned()).is_err() && file("../token".to_owned()).is_err());
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        std::fs::write(path("large"), vec![b'a'; 64 * 1024 + 1]).unwrap();
        std::fs::write(path("small"), "a").unwrap();
        assert_eq!(read(&path("small")).await.as_deref(), Ok("a"));
        for (name, why) in [("none", "cannot be read"), ("large", "larger"), ("", "not a file")] {
            let error = read(&path(name)).await.unwrap_err();
            assert!(error.contains(why) && !error.contains("aaa"), "{error}");
        }
        assert!(read("/dev/zero").await.is_err());
    }
}
