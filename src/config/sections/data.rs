//! Data, credentials, sessions and accounting.

use std::path::Path;

use crate::bounded::{DAY, GIB, KIB, MIB, MIN, MS, OneOf, S, Seconds, Size, Span, Whole};
use crate::config::forms::{DatabaseUrl, File, HeaderNames, Hidden, NetworkList, Source};
use crate::config::section::settings;
use crate::config::setting::at;
use crate::domain::secret::Secret;
use crate::limits::OnRedisLoss;
use crate::policy::reservation::Reservation;

/// Minimum length of the admin token, in characters: shorter ones could be guessed.
pub const ADMIN_TOKEN_MIN: usize = 16;

settings! {
    /// Which database, and how many connections.
    pub struct Database {
        /// The address of PostgreSQL with its password; unset = the embedded database. See
        /// [`Config::database_target`](crate::config::Config::database_target).
        url: Option<DatabaseUrl> = at("database.url").env("DATABASE_URL");
        /// A standby of it that reports read from, with its password.
        read_url: Option<DatabaseUrl> = at("database.read_url");
        /// Connections to PostgreSQL (as many again to the standby); ignored for the embedded
        /// database.
        max_connections: Whole<u32, 3, 1000> = at("database.max_connections").or("10");
        /// Keep a snapshot of PostgreSQL, and start with it while the server is away.
        snapshot: bool = at("database.snapshot").or("true");
        /// Milliseconds; a start does not use a snapshot that is older.
        snapshot_max_age_ms: Span<MIN, { 30 * DAY }> = at("database.snapshot_max_age").or("3d");
    }

    /// The gateway's own credentials, and the headers of clients' keys. A file of a secret is read
    /// again when it changes, so the secrets are live.
    pub struct Auth {
        /// `None`: the gateway generates one and keeps it in the data directory.
        admin_token: Option<Hidden<ADMIN_TOKEN_MIN>> =
            at("auth.admin_token").env("ADMIN_TOKEN").live();
        /// Encrypts provider keys at rest. `None`: the gateway keeps a generated one in the data
        /// directory.
        secret_key: Option<Hidden<16>> = at("auth.secret_key").env("TOLLGATE_SECRET_KEY").live();
        /// Still opens what it sealed, during a rotation.
        secret_key_previous: Option<Hidden<16>> =
            at("auth.secret_key_previous").env("TOLLGATE_SECRET_KEY_PREVIOUS").live();
        /// Header names, lower case, that carry a key as `x-alt-api-key` does.
        alt_key_headers: HeaderNames =
            at("auth.alt_key_headers").or("x-alt-api-key, x-goog-api-key");
    }

    /// How long sessions live, how they are recognised, and what is stored of their messages.
    pub struct Session {
        /// Seconds after its last request for which a session stays live.
        ttl_s: Seconds<S, { 7 * DAY }> = at("session.ttl").or("5m").env("SESSION_TTL");
        /// Header names, lower case, in order of preference.
        headers: HeaderNames = at("session.headers")
            .or("x-session-id, session_id, session-id, x-claude-code-session-id");
        /// Whether the bodies that clients send and receive are stored.
        store_messages: bool =
            at("session.store_messages").or("false").env("STORE_SESSION_MESSAGES");
        /// Of each body.
        message_bytes: Size<usize, KIB, { 16 * MIB }> = at("session.message_bytes").or("256KiB");
        /// Of all stored messages.
        messages_total_bytes: Size<u64, MIB, { 1024 * GIB }> =
            at("session.messages_total_bytes").or("1GiB");
    }

    /// The local journal in front of the database, and its writer.
    #[derive(Copy)]
    pub struct Ledger {
        /// Bytes of a journal file at which the next one begins.
        segment_bytes: Size<u64, { 64 * KIB }, GIB> = at("ledger.segment_bytes").or("64MiB");
        /// Beyond this many unwritten bytes new requests are refused.
        max_bytes: Size<u64, MIB, { 1024 * GIB }> = at("ledger.max_bytes").or("4GiB");
        /// Most records in one transaction; see
        /// [`Config::batch_rows`](crate::config::Config::batch_rows).
        batch_rows: Option<Whole<usize, 1, 10_000>> = at("ledger.batch_rows");
        /// Longest wait in milliseconds before an incomplete batch is written.
        flush_interval_ms: Span<MS, MIN> = at("ledger.flush_interval").or("200ms");
        /// Milliseconds between two syncs of the journal to the disk.
        sync_interval_ms: Span<MS, MIN> = at("ledger.sync_interval").or("1s");
    }

    /// How limits are counted.
    #[derive(Copy)]
    pub struct Limits {
        /// How requests in flight count against the limits.
        reservation: OneOf<Reservation> = at("limits.reservation").or("expected");
        /// What a node does with requests while Redis does not answer.
        on_redis_loss: OneOf<OnRedisLoss> = at("limits.on_redis_loss").or("local");
    }

    /// Where prices come from; the treatment of unpriced models is in [`Live`](super::Live).
    pub struct Prices {
        /// Price table for an empty database; `None` =
        /// [`BUILT_IN_PRICES`](crate::config::BUILT_IN_PRICES).
        seed_file: Option<File> = at("prices.seed_file");
        /// Where a sync fetches from: an `http`, `https` or `file` address.
        sync_url: Source = at("prices.sync_url").or(PRICE_LIST);
    }

    /// Where webhooks may be sent.
    pub struct Webhooks {
        /// Networks that are allowed although they are not public.
        allow_private: NetworkList = at("webhooks.allow_private").or("");
    }

    /// Texts that a responses provider's instruction strategy may insert; read at start.
    pub struct Instructions {
        /// Instructions for models with `codex` in their name; `None` = the other text, if there
        /// is one.
        short_file: Option<File> = at("instructions.short_file");
        /// Instructions for all other models; `None` = the other text, if there is one.
        long_file: Option<File> = at("instructions.long_file");
    }
}

const PRICE_LIST: &str = "https://raw.githubusercontent.com/BerriAI/litellm/main/\
                          model_prices_and_context_window.json";

/// The database of configuration, ledger and request log.
#[derive(Debug, Clone, Copy)]
pub enum DatabaseTarget<'a> {
    /// Embedded, in a file of this directory.
    Sqlite {
        /// The data directory; the store defines the file's name in it.
        dir: &'a Path,
    },
    /// `postgres://…`, including its password.
    Postgres(&'a Secret),
}
