//! Model listings of providers that come in pages.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::fixture::Fixture;

/// A provider whose list has two pages: the second is asked for with this in the query.
async fn paged(pages: [Value; 2], after: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 16 * 1024];
            let len = socket.read(&mut request).await.unwrap_or_default();
            let request = String::from_utf8_lossy(&request[..len]).into_owned();
            let body = pages[usize::from(request.contains(after))].to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            let _ = socket.write_all((head + &body).as_bytes()).await;
        }
    });
    url
}

async fn listed(fixture: &Fixture, path: &str) -> Vec<String> {
    let url = format!("{}{path}", fixture.gateway.proxy);
    let answer = fixture.gateway.client.get(url).header("x-api-key", &fixture.key).send();
    let listing: Value = answer.await.unwrap().json().await.unwrap();
    let models = listing["data"].as_array().or_else(|| listing["models"].as_array()).unwrap();
    let name = |m: &Value| m["id"].as_str().or_else(|| m["name"].as_str()).unwrap().to_owned();
    models.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_of_several_pages_is_read_to_its_end() {
    let native = |id: &str, more: bool| json!({"data": [{"type": "model", "id": id}], "has_more": more, "last_id": id});
    let alt = |name: &str, next: Option<&str>| json!({"models": [{"name": format!("models/{name}")}], "nextPageToken": next});
    for (kind, path, pages, after, expected) in [
        (
            "native",
            "/v1/models",
            [native("first", true), native("last", false)],
            "?limit=1000&after_id=first",
            ["first", "last"],
        ),
        (
            "alt-cli",
            "/v1beta/models",
            [alt("first", Some("t/1")), alt("last", None)],
            "?pageSize=1000&pageToken=t%2F1",
            ["models/first", "models/last"],
        ),
    ] {
        let fixture = Fixture::bare(&[]).await;
        let url = paged(pages, after).await;
        fixture.gateway.provider(kind, &url, json!({})).await;
        let names = listed(&fixture, path).await;
        assert!(expected.iter().all(|name| names.iter().any(|n| n == name)), "{kind}: {names:?}");
    }
}
