//! Stored messages: stored once, found by session and key, and removed oldest first.

use tollgate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use tollgate::store::{Clip, MessageCursor, StoredMessage};

use super::make::NOON;
use super::{Place, on_both};

on_both!(
    messages_come_back_by_session_and_key,
    a_page_ends_between_two_messages_of_one_millisecond,
    the_oldest_go_first
);

fn message(key: Option<i64>, session: &str, at_ms: i64) -> StoredMessage {
    StoredMessage {
        request_id: RequestId::new(),
        started_at: NOON.plus_ms(at_ms),
        session: SessionId::from(session),
        key_id: key.map(KeyId),
        user_id: key.map(UserId),
        request: Clip { bytes: vec![0xff, 0, b'a'], cut: true },
        response: Clip { bytes: vec![b'x'; 997], cut: false },
    }
}

async fn messages_come_back_by_session_and_key(place: Place) {
    let store = place.ready().await;
    let all = [
        message(Some(1), "s", 0),
        message(Some(1), "s", 1),
        message(Some(2), "s", 2),
        message(None, "s", 3),
    ];
    store.insert_messages(&all).await.unwrap();
    store.insert_messages(&all[..2]).await.unwrap();
    let of_one = store.session_messages("s", Some(KeyId(1)), None, 10).await.unwrap();
    assert_eq!(of_one, [all[1].clone(), all[0].clone()]);
    let before = Some(MessageCursor { started_at: NOON.plus_ms(1), request_id: all[1].request_id });
    assert_eq!(store.session_messages("s", Some(KeyId(1)), before, 10).await.unwrap(), all[..1]);
    assert_eq!(store.session_messages("s", None, None, 10).await.unwrap(), all[3..]);
    assert!(store.session_messages("t", Some(KeyId(1)), None, 10).await.unwrap().is_empty());
}

async fn a_page_ends_between_two_messages_of_one_millisecond(place: Place) {
    let store = place.ready().await;
    let all: Vec<StoredMessage> = (0..7).map(|n| message(Some(1), "s", n / 4)).collect();
    store.insert_messages(&all).await.unwrap();
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let page = store.session_messages("s", Some(KeyId(1)), before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(MessageCursor { started_at: last.started_at, request_id: last.request_id });
        seen.extend(page);
    }
    seen.reverse();
    assert_eq!(seen, all, "ids are in the order in which they are made");
}

async fn the_oldest_go_first(place: Place) {
    let store = place.ready().await;
    let all: Vec<StoredMessage> = (0..1_200).map(|n| message(Some(1), "s", n)).collect();
    store.insert_messages(&all).await.unwrap();
    assert_eq!(store.prune_messages(NOON.plus_ms(100)).await.unwrap(), 100);
    assert_eq!(store.prune_messages(NOON.plus_ms(100)).await.unwrap(), 0);
    assert_eq!(store.trim_messages(1_100_000).await.unwrap(), 0, "as much as there is");
    assert_eq!(store.trim_messages(1_099_999).await.unwrap(), 1, "no more than is needed");
    assert_eq!(store.trim_messages(600_000).await.unwrap(), 499);
    let left = store.session_messages("s", Some(KeyId(1)), None, 2_000).await.unwrap();
    assert_eq!((left.len(), left.last().unwrap().started_at), (600, NOON.plus_ms(600)));
}
