//! Stored messages of sessions: what clients sent and received, bounded, and removed oldest first.

use sqlx::AssertSqlSafe;

use crate::domain::clock::Timestamp;
use crate::domain::ids::{KeyId, RequestId, SessionId, UserId};
use crate::store::Store;
use crate::store::engine::column::{Fields, Values};
use crate::store::engine::error::StoreError;
use crate::store::engine::sql;

/// One request's two bodies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The request's id, which is the key of the row.
    pub request_id: RequestId,
    /// The request's start.
    pub started_at: Timestamp,
    /// The session that the request belongs to.
    pub session: SessionId,
    /// `None` = the admin token.
    pub key_id: Option<KeyId>,
    /// The owner of the key; `None` = the admin token.
    pub user_id: Option<UserId>,
    /// As the client sent it.
    pub request: Clip,
    /// As the client received it: of a stream, its events.
    pub response: Clip,
}

/// A message's place in its session.
#[derive(Debug, Clone, Copy)]
pub struct MessageCursor {
    /// The request's start.
    pub started_at: Timestamp,
    /// Orders the requests of one millisecond.
    pub request_id: RequestId,
}

/// The beginning of a body.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clip {
    /// The first bytes of the body, at most as many as [`Clip::add`] was given as the maximum.
    pub bytes: Vec<u8>,
    /// The body was longer.
    pub cut: bool,
}

impl Clip {
    /// Adds bytes, up to `most` in total.
    pub fn add(&mut self, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len());
        match bytes.get(..room) {
            Some(fitting) => {
                self.bytes.extend_from_slice(fitting);
                self.cut |= bytes.len() > room;
            }
            None => self.bytes.extend_from_slice(bytes),
        }
    }
}

const COLUMNS: &[&str] = &[
    "request_id",
    "started_at",
    "session_id",
    "key_id",
    "user_id",
    "bytes",
    "request_cut",
    "response_cut",
    "request",
    "response",
];

/// Rows that one statement removes.
const BATCH: i64 = 500;

impl Store {
    /// Stores messages; those that are already stored stay as they are.
    pub async fn insert_messages(&self, messages: &[StoredMessage]) -> Result<(), StoreError> {
        let mut connection = self.writer().await?;
        let insert = sql::insert(self.backend(), "session_messages", COLUMNS, 1)
            + "ON CONFLICT (request_id) DO NOTHING";
        for message in messages {
            let bytes = message.request.bytes.len() + message.response.bytes.len();
            let mut values = Values::default();
            values
                .bytes(message.request_id.0.as_bytes())
                .time(message.started_at)
                .text(message.session.as_str());
            values.opt_int(message.key_id.map(|id| id.0)).opt_int(message.user_id.map(|id| id.0));
            values.int(i64::try_from(bytes).unwrap_or(i64::MAX));
            values.flag(message.request.cut).flag(message.response.cut);
            values.bytes(&message.request.bytes).bytes(&message.response.bytes);
            let query = sqlx::query_with(AssertSqlSafe(insert.clone()), values.into_arguments());
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }

    /// The messages of a key's session before `before`, newest first, at most `most`.
    /// Those that began in the same millisecond are ordered by their requests' ids.
    pub async fn session_messages(
        &self,
        session: &str,
        key: Option<KeyId>,
        before: Option<MessageCursor>,
        most: u32,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut values = Values::default();
        let newest = MessageCursor {
            started_at: Timestamp(i64::MAX),
            request_id: RequestId(uuid::Uuid::max()),
        };
        let before = before.unwrap_or(newest);
        values
            .text(session)
            .int(key.map_or(0, |id| id.0))
            .time(before.started_at)
            .bytes(before.request_id.0.as_bytes())
            .int(i64::from(most));
        let sql = "SELECT request_id, started_at, session_id, key_id, user_id, request_cut, \
                   response_cut, request, response FROM session_messages \
                   WHERE session_id = $1 AND COALESCE(key_id, 0) = $2 AND started_at <= $3 \
                   AND (started_at < $3 OR request_id < $4) \
                   ORDER BY started_at DESC, request_id DESC LIMIT $5";
        let rows = sqlx::query_with(sql, values.into_arguments())
            .fetch_all(&mut *self.report().await?)
            .await?;
        let read = |row| {
            let fields = Fields { row, table: "session_messages" };
            Ok(StoredMessage {
                request_id: RequestId(uuid::Uuid::from_bytes(fields.bytes("request_id")?)),
                started_at: fields.time("started_at")?,
                session: SessionId(fields.text("session_id")?.into()),
                key_id: fields.opt_int("key_id")?.map(KeyId),
                user_id: fields.opt_int("user_id")?.map(UserId),
                request: Clip { bytes: fields.blob("request")?, cut: fields.flag("request_cut")? },
                response: Clip {
                    bytes: fields.blob("response")?,
                    cut: fields.flag("response_cut")?,
                },
            })
        };
        rows.iter().map(read).collect()
    }

    /// Removes some of the messages that are older than `before`; returns their number. Fewer than
    /// a batch: none is left.
    pub async fn prune_messages(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut values = Values::default();
        values.time(before).int(BATCH);
        self.remove_messages("WHERE started_at < $1 ORDER BY started_at LIMIT $2", values).await
    }

    /// Removes the oldest messages, so that the newest with `most` bytes together remain, a batch
    /// at a time; returns their number.
    pub async fn trim_messages(&self, most: u64) -> Result<u64, StoreError> {
        let sql = "SELECT COALESCE(CAST(SUM(bytes) AS BIGINT), 0) AS bytes FROM session_messages";
        let row = sqlx::query(sql).fetch_one(&mut *self.reader().await?).await?;
        if (Fields { row: &row, table: "session_messages" }).number::<u64>("bytes")? <= most {
            return Ok(0);
        }
        let mut values = Values::default();
        values.int(i64::try_from(most).unwrap_or(i64::MAX)).int(BATCH);
        let beyond = "WHERE request_id IN (SELECT request_id \
                      FROM (SELECT request_id, CAST(SUM(bytes) OVER (ORDER BY started_at DESC, \
                      request_id DESC) AS BIGINT) AS newer FROM session_messages) AS counted \
                      WHERE newer > $1) ORDER BY started_at LIMIT $2";
        self.remove_messages(beyond, values).await
    }

    async fn remove_messages(&self, which: &str, values: Values) -> Result<u64, StoreError> {
        let sql = format!(
            "DELETE FROM session_messages WHERE request_id IN (SELECT request_id \
             FROM session_messages {which})"
        );
        let query = sqlx::query_with(AssertSqlSafe(sql), values.into_arguments());
        Ok(query.execute(&mut *self.writer().await?).await?.rows_affected())
    }
}

#[cfg(test)]
mod tests {
    use super::Clip;

    #[test]
    fn a_clip_keeps_the_beginning_and_says_whether_there_was_more() {
        let mut clip = Clip::default();
        clip.add(b"abc", 5);
        assert_eq!((clip.bytes.as_slice(), clip.cut), (b"abc".as_slice(), false));
        clip.add(b"de", 5);
        assert_eq!((clip.bytes.as_slice(), clip.cut), (b"abcde".as_slice(), false));
        clip.add(b"", 5);
        assert!(!clip.cut);
        clip.add(b"f", 5);
        assert_eq!((clip.bytes.as_slice(), clip.cut), (b"abcde".as_slice(), true));
    }
}
