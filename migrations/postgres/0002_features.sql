-- Which models a key may use, and which features of requests keys, users and providers allow and deny: JSON lists of
-- names. Those of groups are part of the system settings.
ALTER TABLE api_keys ADD COLUMN allowed_models TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN allowed_features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE api_keys ADD COLUMN denied_features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE users ADD COLUMN allowed_features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE users ADD COLUMN denied_features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE providers ADD COLUMN allowed_features TEXT NOT NULL DEFAULT '[]';
ALTER TABLE providers ADD COLUMN denied_features TEXT NOT NULL DEFAULT '[]';
