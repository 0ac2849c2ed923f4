-- A provider's own certificates, PEM. The private key is sealed with the credential.
ALTER TABLE providers ADD COLUMN tls_ca TEXT;
ALTER TABLE providers ADD COLUMN tls_client_certificate TEXT;
