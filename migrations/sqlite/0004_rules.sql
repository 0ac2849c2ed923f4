-- Error rules that come with the program, and which versions of known clients were seen.

-- what a rule of the program's own is known by in every version; null for an operator's
ALTER TABLE error_rules ADD COLUMN builtin_code TEXT;
-- rises when the program's own text of the rule changes
ALTER TABLE error_rules ADD COLUMN builtin_revision INTEGER NOT NULL DEFAULT 0;
-- an operator has changed it: upgrades leave it alone
ALTER TABLE error_rules ADD COLUMN is_edited INTEGER NOT NULL DEFAULT 0;
ALTER TABLE error_rules ADD COLUMN applies_to TEXT NOT NULL DEFAULT '4xx';
-- a removed rule of the program's own is kept, so that no upgrade brings it back
ALTER TABLE error_rules ADD COLUMN deleted_at INTEGER;
CREATE UNIQUE INDEX error_rules_builtin ON error_rules (builtin_code);

CREATE TABLE client_versions (
    client TEXT NOT NULL,
    version TEXT NOT NULL,
    user_id INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    PRIMARY KEY (client, version, user_id)
);
