-- How a provider's credential is sent (auto: as its type has it), parameters that are added to the
-- query of its requests (JSON, pairs of texts), and the form of its paths.
ALTER TABLE providers ADD COLUMN auth TEXT NOT NULL DEFAULT 'auto';
ALTER TABLE providers ADD COLUMN query TEXT NOT NULL DEFAULT '[]';
ALTER TABLE providers ADD COLUMN path_template TEXT;
