-- Whether a provider's host is Anthropic's own: auto, yes or no.
ALTER TABLE providers ADD COLUMN anthropic_host TEXT NOT NULL DEFAULT 'auto';
