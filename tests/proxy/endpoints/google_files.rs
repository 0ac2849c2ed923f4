//! Uploads of files of Google's form: the provider's address is replaced by one at the gateway,
//! which needs no credential, and which nobody else can make.

use reqwest::RequestBuilder;
use serde_json::json;

use super::super::fixture::Fixture;
use super::batches::{fixture, send};
use super::stored;

const UPLOADS: &str = "/upload/v1beta/files";
const MAKE: &str = "/v1beta/models/m:batchGenerateContent";

/// Requests of a batch, as the lines of a file.
pub fn lines(count: usize, text: &str) -> String {
    let one = |at| {
        let contents = json!([{"parts": [{"text": text}]}]);
        json!({"key": format!("r{at}"), "request": {"contents": contents}}).to_string()
    };
    (0..count).map(one).collect::<Vec<_>>().join("\n")
}

/// Begins an upload: the answer.
async fn begin(fixture: &Fixture) -> reqwest::Response {
    let sent = fixture
        .post(UPLOADS, &json!({"file": {"displayName": "f"}}))
        .header("x-goog-upload-protocol", "resumable")
        .header("x-goog-upload-command", "start")
        .header("x-goog-upload-header-content-length", "5")
        .header("x-goog-upload-header-content-type", "application/jsonl");
    sent.send().await.unwrap()
}

/// The address of a new upload.
async fn address(fixture: &Fixture) -> String {
    let begun = begin(fixture).await;
    assert_eq!(begun.status(), 200);
    assert_eq!(begun.headers()["x-goog-upload-status"], "active");
    begun.headers()["x-goog-upload-url"].to_str().unwrap().to_owned()
}

/// A piece of a file, without a credential.
fn piece(fixture: &Fixture, address: &str, command: &str, at: usize, text: &str) -> RequestBuilder {
    fixture
        .gateway
        .client
        .post(address)
        .header("x-goog-upload-command", command)
        .header("x-goog-upload-offset", at.to_string())
        .body(text.to_owned())
}

/// Uploads a file, in one piece or cut at these places: its name.
pub async fn upload(fixture: &Fixture, text: &str, cuts: &[usize]) -> String {
    let address = address(fixture).await;
    let mut start = 0;
    for end in cuts {
        let sent = piece(fixture, &address, "upload", start, &text[start..*end]).send();
        let answer = sent.await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.content_length()), (200, Some(0)));
        assert_eq!(answer.headers()["x-goog-upload-status"], "active");
        start = *end;
    }
    let last = piece(fixture, &address, "upload, finalize", start, &text[start..]);
    let (status, said) = send(last).await;
    assert_eq!(status, 200, "{said}");
    said["file"]["name"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_goes_through_the_gateway_to_the_account_that_began_it() {
    let fixture = fixture(&[]).await;
    let address = address(&fixture).await;
    assert!(address.starts_with(&format!("{}{UPLOADS}?", fixture.gateway.proxy)), "{address}");
    let text = lines(2, "hello");
    let (status, said) = send(piece(&fixture, &address, "upload, finalize", 0, &text)).await;
    assert_eq!(status, 200, "{said}");
    let sent = fixture.upstream.requests().await;
    let [begun, rest] = &sent[..] else { panic!("{sent:?}") };
    for (asked, command) in [(begun, "start"), (rest, "upload, finalize")] {
        assert_eq!(asked["path"], UPLOADS, "{asked}");
        assert_eq!(asked["headers"]["x-goog-upload-command"], command, "{asked}");
        assert!(asked["headers"]["x-goog-api-key"].is_string(), "{asked}");
    }
    let query = rest["query"].as_str().unwrap();
    assert!(query.starts_with("upload_id=upload0"), "the provider's own: {query}");
    assert_eq!(rest["body_bytes"], text.len());
    let path = format!("/v1beta/{}", said["file"]["name"].as_str().unwrap());
    let (status, file) = stored::call(&fixture, "GET", &path, &fixture.key).await;
    assert_eq!((status, &file["sizeBytes"]), (200, &json!(text.len().to_string())), "{file}");
    let (_, _, other) = fixture.gateway.user(json!({"name": "other"})).await;
    assert_eq!(stored::call(&fixture, "GET", &path, &other).await.0, 404);
    let (_, list) = stored::call(&fixture, "GET", "/v1beta/files", &other).await;
    assert_eq!(list, json!({"files": []}));
    assert_eq!(stored::call(&fixture, "DELETE", &path, &fixture.key).await, (200, json!({})));
    assert_eq!(stored::call(&fixture, "GET", &path, &fixture.key).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_pieces_or_in_two_parts_is_passed_on_and_is_no_batch() {
    let fixture = fixture(&[]).await;
    let text = lines(2, "hello");
    let in_pieces = upload(&fixture, &text, &[10, 40]).await;
    let related = format!(
        "--b\r\nContent-Type: application/json\r\n\r\n{{\"file\":{{}}}}\r\n--b\r\n\
         Content-Type: application/jsonl\r\n\r\n{text}\r\n--b--\r\n"
    );
    let url = format!("{}{UPLOADS}?uploadType=multipart", fixture.gateway.proxy);
    let sent = fixture.gateway.client.post(url).header("x-goog-api-key", &fixture.key);
    let sent = sent.header("content-type", "multipart/related; boundary=b").body(related);
    let (status, said) = send(sent).await;
    assert_eq!(status, 200, "{said}");
    let in_parts = said["file"]["name"].as_str().unwrap().to_owned();
    for name in [in_pieces, in_parts] {
        let path = format!("/v1beta/{name}");
        let (_, file) = stored::call(&fixture, "GET", &path, &fixture.key).await;
        assert_eq!(file["sizeBytes"], text.len().to_string(), "{file}");
        let body = json!({"batch": {"inputConfig": {"fileName": name}}});
        let (status, said) = send(fixture.post(MAKE, &body)).await;
        assert_eq!(status, 400, "{said}");
        assert!(said.to_string().contains("in one piece"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_good_for_its_key_alone_and_as_long_as_the_key() {
    let mut fixture = fixture(&[]).await;
    let address = address(&fixture).await;
    let (start, sealed) = address.split_once("upload_id=").unwrap();
    let mut other = sealed.to_owned();
    other.replace_range(60..61, if &other[60..61] == "A" { "B" } else { "A" });
    for forged in [&*other, "x", ""] {
        let forged = format!("{start}upload_id={forged}");
        let (status, said) = send(piece(&fixture, &forged, "upload, finalize", 0, "x")).await;
        assert_eq!(status, 404, "{said}");
    }
    // Without an address, a credential is needed.
    let url = format!("{}{UPLOADS}", fixture.gateway.proxy);
    let (status, said) = send(piece(&fixture, &url, "upload, finalize", 0, "x")).await;
    assert_eq!(status, 401, "{said}");
    fixture.gateway.kill();
    fixture.gateway.spawn();
    fixture.gateway.ready().await;
    let answer = piece(&fixture, &address, "upload", 0, "x").send().await.unwrap();
    assert_eq!(answer.status(), 200, "a restart changes nothing");
    // The last key of a user cannot be disabled.
    let second = json!({"userId": fixture.user_id, "name": "second"});
    fixture.gateway.admin("keys/addKey", second).await;
    let key = json!({"keyId": fixture.key_id, "enabled": false});
    fixture.gateway.admin("keys/toggleKeyEnabled", key).await;
    let (status, said) = send(piece(&fixture, &address, "upload, finalize", 1, "x")).await;
    assert_eq!(status, 401, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_not_send_uploads_elsewhere() {
    let fixture = fixture(&[]).await;
    let elsewhere = json!({"x-goog-upload-url": "http://127.0.0.1:9/upload?upload_id=1"});
    fixture.upstream.default(json!({"headers": elsewhere})).await;
    let begun = begin(&fixture).await;
    assert_eq!(begun.status(), 502);
    assert!(!begun.headers().contains_key("x-goog-upload-url"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sensitive_words_of_a_batch_are_found_when_it_is_uploaded() {
    let fixture = fixture(&[]).await;
    let word = json!({"word": "forbidden", "matchType": "contains"});
    fixture.gateway.admin("sensitive-words/createSensitiveWordAction", word).await;
    let address = address(&fixture).await;
    let sent = fixture.upstream.requests().await.len();
    let text = lines(2, "a forbidden text");
    let (status, said) = send(piece(&fixture, &address, "upload, finalize", 0, &text)).await;
    assert_eq!(status, 403, "{said}");
    assert_eq!(fixture.upstream.requests().await.len(), sent, "nothing was sent");
    let deny = json!({"keyId": fixture.key_id, "deniedFeatures": ["files"]});
    fixture.gateway.admin("keys/editKey", deny).await;
    assert_eq!(begin(&fixture).await.status(), 403);
}
