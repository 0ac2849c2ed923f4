-- Where a provider's invoice is read from: the vendor's report API and the administration key for it.
CREATE TABLE invoice_sources (
    provider_id INTEGER NOT NULL PRIMARY KEY REFERENCES providers (id),
    kind TEXT NOT NULL,
    url TEXT NOT NULL,
    -- the vendor's administration key, sealed; never plain
    key_cipher TEXT NOT NULL,
    -- the vendor's ids of the API keys that the gateway uses; empty: all
    api_key_ids TEXT NOT NULL DEFAULT '[]',
    is_daily INTEGER NOT NULL DEFAULT 0,
    -- billionths of a US dollar
    alert_above INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
