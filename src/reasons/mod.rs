//! Why the administration refuses something: a code, and beyond it a reason, which has a name for
//! programs and a text for people.
//!
//! Every text of a refusal is in this table, with its parameters in braces, so that user interfaces
//! can translate it by its name. The OpenAPI document lists the names.

mod code;

pub use code::Code;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal, $text:literal;)+) => {
        /// Why something is refused: `reason` in the parameters of a refusal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Reason {
            $($(#[doc = $doc])* #[doc = $text] #[serde(rename = $word)] $name,)+
        }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The text, its parameters in braces.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

reasons! {
    ActionUnfinished = "action_unfinished", "this has not ended within a minute; the database may \
        not answer. It may still be done: look before you repeat it";
    AddressHasBadPort = "address_has_bad_port", "has a port that is none";
    AddressHasCredentials = "address_has_credentials", "must not carry credentials: send them \
        in `key`";
    AddressHasQuery = "address_has_query", "must not have a query or a fragment";
    AtLeast = "at_least", "must be at least {min}";
    AtLeastCharacters = "at_least_characters", "must have at least {min} characters";
    AtLeastEntries = "at_least_entries", "must have at least {min} entries";
    AtMost = "at_most", "must be at most {max}";
    AtMostBytes = "at_most_bytes", "must have at most {max} bytes";
    AtMostCharacters = "at_most_characters", "must have at most {max} characters";
    AtMostEntries = "at_most_entries", "must have at most {max} entries";
    BelongsToAnother = "belongs_to_another", "this belongs to another user";
    BodiesFull = "bodies_full", "the gateway holds as many administration bodies as it may now";
    BodyLate = "body_late", "the body did not arrive in time";
    BodyNoJson = "body_no_json", "the body is not JSON: {detail}";
    BodyNoObject = "body_no_object", "the body must be a JSON object";
    BodyUnreadable = "body_unreadable", "the body could not be read";
    CertificateExpired = "certificate_expired", "has expired";
    CertificateKeyMissing = "certificate_key_missing", "a client certificate needs its private key";
    CertificateKeyOther = "certificate_key_other", "is not the key of the client certificate";
    CertificateKeyUnreadable = "certificate_key_unreadable", "is not a private key in PEM that can \
        be used (RSA, ECDSA or Ed25519, not encrypted)";
    CertificateMissing = "certificate_missing", "a private key needs its certificate in \
        `tls_client_certificate`";
    CertificateNeedsHttps = "certificate_needs_https", "is only for a provider whose `url` begins \
        with https";
    CertificateUnreadable = "certificate_unreadable", "is not a certificate in PEM";
    CleanupRuns = "cleanup_runs", "the request log is being cleaned up already";
    CredentialNotSent = "credential_not_sent", "is JSON, as credentials are that are exchanged or sign \
        requests: this `auth` would send it as it is";
    CredentialUnfit = "credential_unfit", "is not a credential of this kind: {detail}";
    CredentialUnknown = "credential_unknown", "the credential is not known";
    CrossOrigin = "cross_origin", "a page of another origin made this request";
    CrossSite = "cross_site", "a page of another site made this request";
    CursorForeign = "cursor_foreign", "is not one of ours";
    DatabaseBusy = "database_busy", "the database is busy; nothing was changed";
    DatabaseLost = "database_lost", "the database cannot be reached";
    DatabaseUnreachable = "database_unreachable", "the database cannot be reached since {since}";
    GroupsByAdministrator = "groups_by_administrator", "only an administrator changes a key's \
        provider groups";
    HasControl = "has_control", "must not contain control characters, or characters that end a \
        line, have no width or change the direction of text";
    HeaderName = "header_name", "{name} is not the name of a header";
    HeaderOfGateway = "header_of_gateway", "{name} cannot be added: the gateway sets it, it belongs to \
        the connection, or it has a credential, which `auth` and `key` are for";
    HeaderValue = "header_value", "{name} must have visible ASCII and blanks only, and its secret \
        parts in braces after $";
    HasNul = "has_nul", "must not contain NUL";
    Internal = "internal", "internal error";
    IsMasked = "is_masked", "is the mask of a secret: leave it out to keep the stored one, or enter \
        it whole";
    IsRequired = "is_required", "is required";
    KeyDeleted = "key_deleted", "the key was deleted";
    KeyDisabled = "key_disabled", "the key is disabled";
    KeyExpired = "key_expired", "the key has expired";
    KeysOfAdministrator = "keys_of_administrator", "only an administrator adds keys for this user, \
        or allows a larger number of them";
    MessagesNotStored = "messages_not_stored", "messages are not stored: STORE_SESSION_MESSAGES \
        (session.store_messages) is not true";
    ListsByAdministrator = "lists_by_administrator", "only an administrator changes which models \
        and features a key may use";
    MustBeBase64 = "must_be_base64", "must be base64";
    MustBeBoolean = "must_be_boolean", "must be true or false";
    MustBeHeaderText = "must_be_header_text", "must be visible ASCII without blanks: it is sent in \
        a header";
    MustBeList = "must_be_list", "must be a list";
    MustBeMoment = "must_be_moment", "must be YYYY-MM-DD or an ISO 8601 time";
    MustBeMomentText = "must_be_moment_text", "must be a date or time as text";
    MustBeNumber = "must_be_number", "must be a number";
    MustBeObject = "must_be_object", "must be an object";
    MustBeOneOf = "must_be_one_of", "must be one of {allowed}";
    MustBeOverride = "must_be_override", "must be a text, or a JSON object with `message` and \
        maybe `type` and `code`: {detail}";
    MustBePathTemplate = "must_be_path_template", "must be a path that begins with /, without a query; \
        its placeholders are model and path, in braces";
    MustBePem = "must_be_pem", "must be PEM, which begins with -----BEGIN";
    MustBeProxyAddress = "must_be_proxy_address", "must be \
        http://, https://, socks5:// or socks5h://, then `[user:password@]host:port`, without a path";
    MustBeText = "must_be_text", "must be text";
    MustBeTexts = "must_be_texts", "must be an object of text to text";
    MustBeTimeOfDay = "must_be_time_of_day", "must be a time of day, HH:MM";
    MustBeWebAddress = "must_be_web_address", "must be an http or https address";
    MustBeWholeNumber = "must_be_whole_number", "must be a whole number";
    MustNotBeEmpty = "must_not_be_empty", "must not be empty";
    NamedTwice = "named_twice", "has two names that differ only in blanks around them";
    NamesNoField = "names_no_field", "must name at least one field";
    NeedsAdministrator = "needs_administrator", "this needs an administrator";
    NeitherKeyNorToken = "neither_key_nor_token", "this is neither a known key nor the \
        administrator token";
    NoCredential = "no_credential", "not logged in: no credential was sent";
    NoUser = "no_user", "this credential is not a user's";
    NotLoggedIn = "not_logged_in", "not logged in";
    NothingToChange = "nothing_to_change", "nothing to change: send at least one of the fields that \
        can change";
    OnlyKey = "only_key", "must be true as long as there are no further keys: the provider's own \
        switch is `is_enabled`";
    OtherAuthorities = "other_authorities", "enter it again: the stored one is only sent to servers \
        that the authorities (tls_ca) it was entered with confirm";
    OtherCredential = "other_credential", "enter it again: another kind of credential is needed";
    OtherDestination = "other_destination", "enter it again: the stored key is only sent to the \
        scheme, host and port that it was entered for";
    OtherProxy = "other_proxy", "enter it again: the stored one is only sent through the proxy \
        that it was entered for";
    PatternBackReference = "back_reference", "back-references, as in \\1, are not supported";
    PatternLookAround = "look_around", "look-around, as in (?=…) or (?<!…), is not supported";
    PatternMatchesEmpty = "matches_empty", "the pattern can match without any character, so it \
        would match everything";
    PatternNestedRepeat = "nested_repeat", "a repeat without an upper bound stands within another \
        one, as in (a+)+: bound one of them";
    PatternSyntax = "syntax", "this is not a regular expression: {detail}";
    PatternTooLarge = "too_large", "the pattern is too complex: its repeats or character classes \
        make it too large";
    PatternTooLong = "too_long", "the pattern is longer than {max} characters";
    BodyNotStored = "body_not_stored", "the body of this request is not stored, and no other can \
        stand for it";
    PlaygroundFull = "playground_full", "too many requests of the playground are running: wait for \
        one to end";
    PriceFacts = "price_facts", "{member} must be as in a row of conf/models.json: {detail}";
    PriceHasNoRate = "price_has_no_rate", "a price entry must name at least one rate, such as \
        input_cost_per_token";
    PriceListFailed = "price_list_failed", "the price list at {address}: {detail}";
    PriceName = "price_name", "a model's name has 1 to {max} characters";
    PriceNegative = "price_negative", "{rate} must not be negative";
    PriceNoNumber = "price_no_number", "{rate} must be a decimal number";
    PriceNoObject = "price_no_object", "a price entry must be a JSON object";
    PriceTableNoObject = "price_table_no_object", "must hold a JSON object of model names: \
        {detail}";
    PriceTooLarge = "price_too_large", "{rate} must not be above {max} USD";
    ProbeNeedsModel = "probe_needs_model", "is required for probes of a provider that names no model \
        in `allowed_models` or `model_redirects`";
    ProbeOfClients = "probe_of_clients", "cannot be set where `auth` is client: the gateway has no \
        account there to probe with";
    ProxyClosed = "proxy_closed", "the proxy takes no requests now";
    ReadsOwnUsage = "reads_own_usage", "this key may only read its own usage";
    ReconcileDays = "reconcile_days", "compare 1 to {max} days, of which the last has begun";
    RedirectNotInPath = "redirect_not_in_path", "{model}: an alt-cli provider has the model in its \
        path: the name must not hold dot segments, backslashes, `%`, `?`, `#` or `;`";
    ReportSlow = "report_slow", "the report takes too long: ask for less";
    ReportsBusy = "reports_busy", "too many reports run at the same time: try again in a few \
        seconds";
    RequiredForFormat = "required_for_format", "is required for this format";
    RequiredWithoutProvider = "required_without_provider", "is required when no stored provider \
        is named";
    SealedWithOtherKey = "sealed_with_other_key", "credentials are sealed with the secret key \
        {sealing} now, and this gateway has {known}: give it that key (auth.secret_key)";
    SessionEnded = "session_ended", "the session is not known or has ended";
    SessionKeyDeleted = "session_key_deleted", "the session's key was deleted";
    SessionOfAnother = "session_of_another", "this session is another user's";
    StarInRedirect = "star_in_redirect", "must not contain `*`: a redirect is for one model";
    StarNotAtEnd = "star_not_at_end", "may have `*` only at its end, where it matches any suffix";
    StoredKeyUnreadable = "stored_key_unreadable", "the stored one {detail}";
    TokenChanged = "token_changed", "the admin token has changed since this login";
    TokenHasNoUsage = "token_has_no_usage", "the administrator token is no key: it has no usage of \
        its own";
    TooFine = "too_fine", "has too many digits after the point";
    TooManyAttempts = "too_many_attempts", "too many failed attempts from this address";
    TooManyKeys = "too_many_keys", "there are {max} keys already";
    TooManyPlaces = "too_many_places", "takes at most {places} digits after the point";
    TooManyRules = "too_many_rules", "there are {max} rules already";
    TooManyWatchers = "too_many_watchers", "too many connections watch already";
    TooManyWords = "too_many_words", "there are {max} words already";
    TwoDailyLimits = "two_daily_limits", "dailyQuota and limitDailyUsd are the same limit: send \
        one of them";
    UnknownField = "unknown_field", "no such field";
    UserInactive = "user_inactive", "the key's user is disabled or has expired";
    WebhookAnswered = "webhook_answered", "the webhook answered {status}";
    WebhookHasCredentials = "webhook_has_credentials", "must not carry a user or a password";
    WebhookNoAddress = "webhook_no_address", "is not an http or https address";
    WebhookNotPublic = "webhook_not_public", "leads to {address}, which is not public ({detail}); \
        the operator can allow its network by webhooks.allow_private";
    WebhookUnreachable = "webhook_unreachable", "the webhook could not be reached: {detail}";
    WebhookUnresolved = "webhook_unresolved", "the webhook names {host}, which does not resolve: \
        {detail}";
}

impl Reason {
    /// That a text has fewer than `min` characters.
    pub const fn too_short(min: usize) -> Self {
        if min == 1 { Self::MustNotBeEmpty } else { Self::AtLeastCharacters }
    }

    /// That a list has fewer than `min` entries.
    pub const fn too_few(min: usize) -> Self {
        if min == 1 { Self::MustNotBeEmpty } else { Self::AtLeastEntries }
    }

    /// The text with its parameters.
    pub fn filled(self, params: &Map<String, Value>) -> String {
        let fill = |text: String, (name, value): (&String, &Value)| {
            text.replace(&format!("{{{name}}}"), &plain(value))
        };
        params.iter().fold(self.text().to_owned(), fill)
    }
}

/// A parameter as a text shows it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
