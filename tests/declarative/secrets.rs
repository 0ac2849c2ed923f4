//! Secrets: masked ones change nothing, references lead where they should, sealed ones open where
//! they belong.

use tollgate::store::Backend;

use super::{Bed, SECRET_KEY, Way, on_both};
use crate::support::gateway::Gateway;

on_both!(
    masked_and_absent_secrets_leave_what_is_stored,
    references_are_resolved_where_the_command_runs,
    a_sealed_credential_opens_for_its_destination_alone,
    a_proxys_password_and_a_client_key_are_masked_or_sealed,
    a_sealed_secret_opens_in_its_own_field_alone,
);

const FILE: &str = "\
version: 1
notifications:
  cost_alert_webhook: https://hooks.example.com/T00000/B1111/secretsecret
  webhook_secret: the-signing-secret-of-webhooks
providers:
  - { name: main, url: https://llm.example.com, key: the-credential-of-main }
";

async fn masked_and_absent_secrets_leave_what_is_stored(backend: Backend) {
    let bed = Bed::start(backend).await;
    bed.apply(Way::Api, FILE, &[]);
    let exported = bed.export(Way::Api);
    for shown in ["cost_alert_webhook: https://hooks.example.com/T000…cret", "key: the-…main"] {
        assert!(exported.contains(shown), "{shown} in {exported}");
    }
    for secret in ["the-signing-secret", "the-credential-of-main", "secretsecret"] {
        assert!(!exported.contains(secret), "{secret} in {exported}");
    }
    let (ciphers, settings) = (bed.ciphers().await, bed.notifications().await);
    bed.assert_stable(Way::Api);
    bed.assert_stable(Way::Database);
    // Beside a change, and where they are not written at all.
    let masked = exported.replace("name: main", "name: main\n  note: changed");
    assert!(bed.apply(Way::Api, &masked, &[]).contains("note: \"\" → \"changed\""));
    let absent = "version: 1\nproviders:\n  - { name: main, url: https://llm.example.com/v1, note: again }\n";
    assert!(bed.apply(Way::Api, absent, &[]).contains("note: \"changed\" → \"again\""));
    assert_eq!((bed.ciphers().await, bed.notifications().await), (ciphers, settings));
    // Elsewhere there is nothing that a mask could stand for.
    let said = bed.refused(Way::Api, &exported.replace("name: main", "name: other"), &[]);
    assert!(
        said.contains("providers[0].key: is required for a new provider, and not masked"),
        "{said}"
    );
    // A stored credential is not sent to an address that is chosen later.
    let elsewhere = "version: 1\nproviders:\n  - { name: main, url: https://evil.example.com }\n";
    let said = bed.refused(Way::Api, elsewhere, &[]);
    assert!(said.contains("gateway.yaml:3:5: providers[0].key: enter it again"), "{said}");
    // Another secret, of which the masked form is the same.
    let said = bed.apply(Way::Api, &FILE.replace("the-credential-of-main", "the-new-main"), &[]);
    assert!(said.contains("key: \"the-…main\" → \"***\""), "{said}");
    let said = bed.apply(Way::Api, &FILE.replace("the-credential-of-main", "the-old-main"), &[]);
    assert!(said.contains("key: \"***\" → \"*** (another)\""), "{said}");
    let said = bed.apply(Way::Api, "version: 1\nnotifications: { webhook_secret: null }\n", &[]);
    assert!(said.contains("webhook_secret: \"***\" → none"), "{said}");
    assert!(
        said.contains("cost_alert_webhook: \"https://hooks.example.com/T000…cret\" → none"),
        "{said}"
    );
}

async fn references_are_resolved_where_the_command_runs(backend: Backend) {
    let mut bed = Bed::start(backend).await;
    bed.gateway.set("MAIN_KEY", "the-credential-of-main");
    bed.gateway.set("HOST", "llm.example.com");
    std::fs::create_dir(bed.path("team")).unwrap();
    bed.write("team/signing", "the-signing-secret-of-webhooks\n");
    bed.write("team/hook", "https://hooks.example.com/T00000/B1111/secretsecret");
    let text = "version: 1\nnotifications:\n  cost_alert_webhook: file:hook\n  webhook_secret: file:signing\n\
                providers:\n  - { name: main, url: 'https://${HOST}', key: '${MAIN_KEY}', note: 'plain $${HOST}' }\n";
    bed.write("team/gateway.yaml", text);
    let said = bed.done(Way::Api, &["apply", "-f", "team/gateway.yaml"]);
    assert!(
        !said.contains("the-credential-of-main") && said.contains("note: \"plain ${HOST}\""),
        "{said}"
    );
    let said = bed.apply(Way::Database, FILE, &[]);
    assert!(
        said.contains("note: \"plain ${HOST}\" → \"\"") && !said.contains("key:"),
        "the same secrets: {said}"
    );
    bed.done(Way::Api, &["apply", "-f", "team/gateway.yaml"]);
    assert!(bed.export(Way::Api).contains("plain $${HOST}"));
    bed.assert_stable(Way::Api);
}

async fn a_sealed_credential_opens_for_its_destination_alone(backend: Backend) {
    let bed = Bed::start(backend).await;
    bed.apply(Way::Api, FILE, &[]);
    let sealed = bed.done(Way::Api, &["export", "--secrets", "sealed"]);
    assert!(
        sealed.matches("sealed:v2:").count() == 3
            && !sealed.contains('…')
            && !sealed.contains("***"),
        "{sealed}"
    );
    let said = bed.apply(Way::Api, &sealed, &["--prune"]);
    assert!(said.contains("No changes"), "{said}");
    // On another gateway with the same secret key.
    let other = Bed::start(backend).await;
    other.apply(Way::Api, &sealed, &["--prune"]);
    assert_eq!(other.export(Way::Api), bed.export(Way::Api));
    let plain = other.apply(Way::Api, FILE, &[]);
    assert!(plain.contains("No changes"), "they are the same secrets: {plain}");
    // To another address, for another record, or altered, it is of no use.
    let elsewhere = sealed
        .replace("https://llm.example.com", "https://evil.example.com")
        .replace("name: main", "name: evil");
    let said = other.refused(Way::Api, &elsewhere, &[]);
    assert!(
        said.contains(
            "providers[0].key: the sealed text was altered, or was sealed for another \
            place or address"
        ),
        "{said}"
    );
    // With another secret key it does not open.
    let mut strange =
        Gateway::prepare(&[("TOLLGATE_SECRET_KEY", &format!("{SECRET_KEY}-of-others"))]);
    strange.spawn();
    strange.ready().await;
    let strange = Bed { gateway: strange, database: None };
    let said = strange.refused(Way::Api, &sealed, &[]);
    assert!(said.contains("was sealed with the secret key"), "{said}");
    // A file that it is written to is private.
    bed.done(Way::Database, &["export", "--secrets", "sealed", "-o", "backup.yaml"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(bed.path("backup.yaml")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

/// What belongs to the way to a provider: the same rules as for its credential.
async fn a_proxys_password_and_a_client_key_are_masked_or_sealed(backend: Backend) {
    let mut bed = Bed::prepare(backend);
    let tls = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls");
    bed.gateway.set("PROXY_PASSWORD", "a-password@of:the/proxy");
    bed.gateway.spawn();
    bed.gateway.ready().await;
    let file = format!(
        "version: 1\nproviders:\n  - name: main\n    url: https://llm.example.com\n    key: the-key\n    \
         proxy_url: \"socks5://user:${{PROXY_PASSWORD}}@proxy.example:1080\"\n    \
         tls_ca: \"file:{tls}/ca.pem\"\n    tls_client_certificate: \"file:{tls}/client.pem\"\n    \
         tls_client_key: \"file:{tls}/client.key\"\n"
    );
    bed.apply(Way::Api, &file, &[]);
    let key = std::fs::read_to_string(format!("{tls}/client.key")).unwrap();
    let key = key.lines().nth(1).unwrap();
    let exported = bed.export(Way::Api);
    assert!(exported.contains("socks5://user:***@proxy.example:1080"), "{exported}");
    assert!(exported.contains("tls_client_key: '***'"), "{exported}");
    bed.assert_stable(Way::Api);
    bed.assert_stable(Way::Database);
    let ciphers = bed.ciphers().await;
    let sealed = bed.done(Way::Api, &["export", "--secrets", "sealed"]);
    assert!(sealed.contains("socks5://user:sealed:v2:"), "{sealed}");
    for text in [&exported, &sealed] {
        assert!(!text.contains("a-password") && !text.contains(key), "{text}");
    }
    let said = bed.apply(Way::Api, &sealed, &[]);
    assert!(said.contains("No changes"), "{said}");
    // Bound to their proxy and origin, also beside a key of the document's own.
    let with_key = |line: &str| match line.split_once("key: sealed:") {
        Some((before, _)) if before.trim().is_empty() => format!("{before}key: another-key"),
        _ => line.to_owned(),
    };
    let sealed = sealed.lines().map(with_key).collect::<Vec<_>>().join("\n");
    for host in ["proxy.example", "llm.example"] {
        let said = bed.refused(Way::Api, &sealed.replace(host, "evil.example"), &[]);
        for field in ["proxy_url", "tls_client_key"] {
            let fault = format!("providers[0].{field}: the sealed text was altered");
            assert!(said.contains(&fault), "{said}");
        }
    }
    let other = file.replace("${PROXY_PASSWORD}", "another");
    let said = bed.apply(Way::Api, &other, &[]);
    assert!(said.contains("proxy_url"), "{said}");
    assert_ne!(bed.ciphers().await, ciphers);
}

/// The text that follows, up to what cannot be a part of a sealed one.
fn after<'t>(text: &'t str, before: &str) -> &'t str {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before} in {text}"));
    let end = rest.find(|c: char| c.is_whitespace() || "@'\"}".contains(c));
    let found = &rest[..end.unwrap_or(rest.len())];
    assert!(found.starts_with("sealed:v2:"), "{found} after {before}");
    found
}

/// What the proxy gets is not what the provider gets.
async fn a_sealed_secret_opens_in_its_own_field_alone(backend: Backend) {
    let bed = Bed::start(backend).await;
    let tls = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nodes/tls");
    let document = |key: &str, password: &str, tls_key: &str, ca: &str| {
        format!(
            "version: 1\nproviders:\n  - name: main\n    url: https://llm.example.com\n    key: {key}\n    \
             proxy_url: \"socks5://user:{password}@proxy.example:1080\"\n    \
             tls_client_certificate: \"file:{tls}/client.pem\"\n    tls_client_key: \"{tls_key}\"\n{ca}"
        )
    };
    let client_key = format!("file:{tls}/client.key");
    bed.apply(Way::Api, &document("the-key", "a-password", &client_key, ""), &[]);
    let sealed = bed.done(Way::Api, &["export", "--secrets", "sealed"]);
    let (key, password) = (after(&sealed, "\n  key: "), after(&sealed, "socks5://user:"));
    let tls_key = after(&sealed, "tls_client_key: ");
    let said = bed.apply(Way::Api, &document(key, password, tls_key, ""), &[]);
    assert!(said.contains("No changes"), "{said}");
    let altered = |said: &str, field: &str| {
        let fault = format!("providers[0].{field}: the sealed text was altered, or was sealed for");
        assert!(said.contains(&fault), "{field}: {said}");
    };
    for (document, field) in [
        (document(password, "a-password", &client_key, ""), "key"),
        (document(tls_key, "a-password", &client_key, ""), "key"),
        (document("the-key", key, &client_key, ""), "proxy_url"),
        (document("the-key", tls_key, &client_key, ""), "proxy_url"),
        (document("the-key", "a-password", key, ""), "tls_client_key"),
        (document("the-key", "a-password", password, ""), "tls_client_key"),
    ] {
        altered(&bed.refused(Way::Api, &document, &[]), field);
    }
    // A sealed key goes to a server that the same authorities confirm.
    let (ca, other) =
        ["ca", "other-ca"].map(|name| format!("    tls_ca: \"file:{tls}/{name}.pem\"\n")).into();
    let whole = |key: &str, ca: &str| document(key, "a-password", &client_key, ca);
    altered(&bed.refused(Way::Api, &whole(key, &ca), &[]), "key");
    bed.apply(Way::Api, &whole("the-key", &ca), &[]);
    let sealed = bed.done(Way::Api, &["export", "--secrets", "sealed"]);
    let key = after(&sealed, "\n  key: ");
    assert!(bed.apply(Way::Api, &whole(key, &ca), &[]).contains("No changes"));
    altered(&bed.refused(Way::Api, &whole(key, &other), &[]), "key");
    let said = bed.refused(Way::Api, &whole("'***'", &other), &[]);
    assert!(said.contains("providers[0].key: enter it again"), "{said}");
    // A credential that is exchanged: as a key that is sent, and in a header.
    let exchanged = |auth: &str, key: &str, more: &str| {
        format!(
            "version: 1\nproviders:\n  - {{ name: main, url: 'https://llm.example.com', \
             auth: {auth}, key: {key}{more} }}\n"
        )
    };
    let application =
        r#"'{"tenant_id":"t-1","client_id":"c-1","client_secret":"a-secret-of-entra"}'"#;
    bed.apply(Way::Api, &exchanged("azure-entra", application, ""), &[]);
    let sealed = bed.done(Way::Api, &["export", "--secrets", "sealed"]);
    let key = after(&sealed, "\n  key: ");
    let said = bed.refused(Way::Api, &exchanged("bearer", &format!("'{key}'"), ""), &[]);
    assert!(said.contains("providers[0].key: is JSON"), "{said}");
    let header = format!(", custom_headers: {{ x-own: '$${{{key}}}' }}");
    let said = bed.refused(Way::Api, &exchanged("bearer", "the-key", &header), &[]);
    altered(&said, "custom_headers.x-own");
}
