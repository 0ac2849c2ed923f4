//! A conversation whose history its provider stores: no other provider can continue it.

use serde_json::{Value, json};

use super::fixture::{Fixture, path};
use crate::support::upstream::Upstream;

/// A request that begins such a conversation, or continues it after a reply.
fn request(format: &str, after: Option<&str>) -> Value {
    let turn = json!([{"role": "user", "content": "go on"}]);
    match (format, after) {
        ("responses", None) => json!({"model": "m", "input": turn}),
        ("responses", Some(reply)) => {
            json!({"model": "m", "input": turn, "previous_response_id": reply})
        }
        (_, None) => {
            json!({"model": "m", "max_tokens": 9, "messages": turn, "thread": {"type": "create"}})
        }
        (_, Some(reply)) => json!({"model": "m", "max_tokens": 9, "messages": turn,
            "thread": {"type": "continue", "previous_message_id": reply}}),
    }
}

async fn ask(fixture: &Fixture, format: &str, after: Option<&str>, stream: bool) -> (u16, String) {
    let mut body = request(format, after);
    body["stream"] = json!(stream);
    let answer = fixture.post(path(format, false), &body).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// The id of a reply.
fn id(reply: &str, stream: bool) -> String {
    let json = match stream {
        true => reply.lines().find_map(|line| line.strip_prefix("data: ")).unwrap(),
        false => reply,
    };
    let event: Value = serde_json::from_str(json).unwrap();
    let found = [&event["id"], &event["response"]["id"], &event["message"]["id"]];
    found.into_iter().find_map(Value::as_str).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_stays_where_its_history_is() {
    for format in ["responses", "native"] {
        let (fixture, other) = (Fixture::bare(&[]).await, Upstream::start().await);
        for upstream in [&fixture.upstream, &other] {
            upstream.default(json!({"strict": false})).await;
            let fields = json!({"max_retry_attempts": 1});
            fixture.gateway.provider(format, &upstream.url, fields).await;
        }
        let count = async || {
            let counts = [fixture.upstream.requests().await.len(), other.requests().await.len()];
            (counts[0], counts[1])
        };
        let mut last = None;
        for stream in [false, true, false, true, false, true, false, true] {
            let (status, reply) = ask(&fixture, format, last.as_deref(), stream).await;
            assert_eq!(status, 200, "{format}: {reply}");
            last = Some(id(&reply, stream));
        }
        // Eight turns, each of which chooses among equals unless it is bound.
        let (ours, theirs) = count().await;
        assert_eq!((ours + theirs, ours * theirs), (8, 0), "{format}: {ours} and {theirs}");
        let (holder, stranger) =
            if ours > 0 { (&fixture.upstream, &other) } else { (&other, &fixture.upstream) };

        // Its own error, and nobody else is asked.
        let gone = json!({"status": 404, "strict": false, "error": {"type": "not_found_error",
            "code": "previous_response_not_found", "message": "the reply is no longer stored"}});
        let down = json!({"status": 529, "strict": false, "error": {"type": "overloaded_error",
            "message": "Overloaded"}});
        for (directive, words) in [(gone, "the reply is no longer stored"), (down, "Overloaded")] {
            holder.default(directive).await;
            let (status, reply) = ask(&fixture, format, last.as_deref(), false).await;
            assert!(status >= 400 && reply.contains(words), "{format}: {status} {reply}");
        }
        assert_eq!(stranger.requests().await.len(), 0, "{format}");
        let rows = fixture.gateway.logs(10).await;
        let chain = rows[0]["decisionChain"].to_string();
        assert!(chain.contains("it stores the conversation's history"), "{chain}");
        // A new conversation may go anywhere.
        let (status, reply) = ask(&fixture, format, None, false).await;
        assert_eq!(status, 200, "{reply}");
        assert_eq!(stranger.requests().await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_another_key_binds_nobody() {
    let (fixture, other) = (Fixture::bare(&[]).await, Upstream::start().await);
    fixture.gateway.provider("responses", &fixture.upstream.url, json!({"priority": 0})).await;
    fixture.gateway.provider("responses", &other.url, json!({"priority": 5})).await;
    for upstream in [&fixture.upstream, &other] {
        upstream.default(json!({"strict": false})).await;
    }
    fixture.upstream.script(json!([{"status": 500}])).await;
    let (_, reply) = ask(&fixture, "responses", None, false).await;
    let reply = id(&reply, false);
    assert_eq!(other.requests().await.len(), 1, "it failed over");
    let (_, _, key) = fixture.gateway.user(json!({"name": "eve"})).await;
    let mine = Fixture { key, ..fixture };
    let (status, text) = ask(&mine, "responses", Some(&reply), false).await;
    assert_eq!(status, 200, "{text}");
    assert_eq!(other.requests().await.len(), 1);
}
