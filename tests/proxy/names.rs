//! Names from outside have one bound, wherever they are: a model's in bodies and paths, what is
//! kept and logged of a path and of the client's name.

use serde_json::{Value, json};

use super::fixture::{FORMATS, Fixture, path, request};

/// Bytes of a model's name.
const MOST: usize = 512;

/// A request for a model of this name, in the path or in the body.
fn asking(format: &str, name: &str) -> (String, Value) {
    let mut body = request(format, false);
    if format == "alt-cli" {
        return (format!("/v1beta/models/{name}:generateContent"), body);
    }
    body["model"] = json!(name);
    (path(format, false).to_owned(), body)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_models_name_has_512_bytes_at_most_in_bodies_and_in_paths() {
    let fixture = Fixture::full().await;
    for format in FORMATS {
        for (length, expected) in [(MOST, 200), (MOST + 1, 400), (50_000, 400)] {
            let (path, body) = asking(format, &"n".repeat(length));
            let answer = fixture.post(&path, &body).send().await.unwrap();
            let status = answer.status().as_u16();
            let said = answer.text().await.unwrap();
            assert_eq!(status, expected, "{format} {length}: {said}");
            assert!(expected == 200 || said.contains("the name is too long"), "{said}");
        }
    }
    // The bytes count, and not their escapes or characters.
    for (name, expected) in [("%C3%A9".repeat(256), 200), ("%C3%A9".repeat(257), 400)] {
        let (path, body) = asking("alt-cli", &name);
        assert_eq!(fixture.post(&path, &body).send().await.unwrap().status(), expected);
    }
    // The other operations on a model in the path.
    for path in [
        format!("/v1beta/models/{}:countTokens", "n".repeat(MOST + 1)),
        format!("/v1/models/{}:streamGenerateContent", "n".repeat(MOST + 1)),
    ] {
        let answer = fixture.post(&path, &request("alt-cli", false)).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{path}");
    }
    let url = format!("{}/v1/models/{}", fixture.gateway.proxy, "n".repeat(MOST + 1));
    let found = fixture.gateway.client.get(url).header("x-api-key", &fixture.key).send().await;
    assert_eq!(found.unwrap().status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_of_a_long_path_and_a_long_client_name_is_bounded() {
    let fixture = Fixture::full().await;
    let (path, body) = asking("alt-cli", &"%6E".repeat(MOST));
    let agent = "a".repeat(20_000);
    let asked = fixture.post(&path, &body).header("user-agent", agent).send().await.unwrap();
    assert_eq!(asked.status(), 200);
    let long = format!("/v1/{}", "x".repeat(20_000));
    assert_eq!(fixture.post(&long, &body).send().await.unwrap().status(), 404);
    let row = &fixture.gateway.logs(1).await[0];
    let endpoint = row["endpoint"].as_str().unwrap();
    assert!(endpoint.len() <= 512 && endpoint.ends_with(":generateContent"), "{endpoint}");
    assert_eq!(row["model"].as_str().unwrap().len(), MOST);
    assert!(row["userAgent"].as_str().unwrap().len() <= 512);
    let sessions = fixture.gateway.admin("active-sessions/getActiveSessions", json!({})).await;
    assert!(sessions.to_string().len() < 4_096, "{sessions}");
    let log = fixture.gateway.log_shows("\"status\":404").await;
    let longest = log.lines().map(str::len).max().unwrap();
    assert!(longest < 4_096, "a line of {longest} bytes");
}
