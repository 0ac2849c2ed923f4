//! Each setting and the test that fails if the gateway ignores it. A new setting needs a line here.
//!
//! The review must confirm that a named test really shows it: this checks that every setting has
//! one, and that it exists.

mod listeners;
mod telemetry;

use std::collections::BTreeSet;
use std::path::Path;

use tollgate::config::SETTINGS;

/// The setting, the file below `tests/`, the test.
type Shown = (&'static str, &'static str, &'static str);

/// Settings of no other table.
const OTHERS: &[Shown] = &[
    ("data_dir", "settings/data.rs", "data_lies_where_that_is_set"),
    (
        "database.url",
        "resilience/database.rs",
        "postgres_killed_and_back_fails_no_request_and_loses_nothing",
    ),
    (
        "database.url_file",
        "vault/files.rs",
        "a_database_address_and_a_credential_of_systemd_come_from_files",
    ),
    (
        "database.read_url",
        "store/replica.rs",
        "reports_of_the_gateway_come_from_the_replica_while_it_is_near_and_else_from_the_primary",
    ),
    (
        "database.read_url_file",
        "config/secrets.rs",
        "a_secret_comes_from_a_file_as_from_its_setting",
    ),
    ("database.max_connections", "settings/data.rs", "so_many_connections_to_postgres_and_no_more"),
    (
        "database.snapshot",
        "resilience/away/refusals.rs",
        "without_the_setting_or_a_key_of_ones_own_there_is_no_snapshot",
    ),
    (
        "database.snapshot_max_age",
        "resilience/away/refusals.rs",
        "a_snapshot_older_than_is_set_is_refused",
    ),
    ("redis.url", "nodes/limits.rs", "what_is_spent_on_one_node_is_spent_on_the_other"),
    ("redis.url_file", "config/secrets.rs", "a_secret_comes_from_a_file_as_from_its_setting"),
    (
        "redis.urls",
        "nodes/servers.rs",
        "limits_hold_for_each_user_over_three_servers_and_a_lost_one_concerns_its_own_users",
    ),
    (
        "redis.urls_file",
        "nodes/servers.rs",
        "nodes_that_get_a_third_server_one_by_one_keep_all_sums",
    ),
    (
        "redis.cluster_parts",
        "nodes/failover.rs",
        "nodes_that_get_other_parts_of_a_cluster_one_by_one_keep_all_sums",
    ),
    (
        "redis.sentinel_password",
        "nodes/failover.rs",
        "sentinels_name_the_next_primary_without_a_failed_request_or_a_wrong_sum",
    ),
    (
        "redis.sentinel_password_file",
        "config/secrets.rs",
        "a_secret_comes_from_a_file_as_from_its_setting",
    ),
    (
        "redis.tls.ca",
        "nodes/secure.rs",
        "counters_and_circuits_are_shared_over_tls_by_a_user_that_may_do_little_else",
    ),
    (
        "redis.tls.cert",
        "nodes/secure.rs",
        "counters_and_circuits_are_shared_over_tls_by_a_user_that_may_do_little_else",
    ),
    (
        "redis.tls.key",
        "nodes/secure.rs",
        "counters_and_circuits_are_shared_over_tls_by_a_user_that_may_do_little_else",
    ),
    ("redis.prefix", "settings/redis.rs", "names_in_redis_begin_as_is_set"),
    ("redis.timeout", "settings/redis.rs", "redis_is_waited_for_as_long_as_is_set"),
    (
        "redis.lease",
        "settings/redis.rs",
        "a_dead_nodes_places_are_free_after_the_lease_that_is_set",
    ),
    (
        "auth.admin_token",
        "proxy/listeners.rs",
        "the_administration_is_on_the_proxys_origin_only_where_that_is_set",
    ),
    (
        "auth.admin_token_file",
        "vault/files.rs",
        "a_changed_admin_token_file_takes_effect_without_a_signal",
    ),
    ("auth.secret_key", "nodes/limits.rs", "what_is_spent_on_one_node_is_spent_on_the_other"),
    (
        "auth.secret_key_file",
        "vault/files.rs",
        "secret_keys_in_files_are_rotated_without_a_restart",
    ),
    (
        "auth.secret_key_previous",
        "vault/rotation.rs",
        "configured_keys_are_rotated_while_the_gateway_serves",
    ),
    (
        "auth.secret_key_previous_file",
        "vault/files.rs",
        "secret_keys_in_files_are_rotated_without_a_restart",
    ),
    (
        "auth.alt_key_headers",
        "proxy/credentials.rs",
        "a_header_of_ones_own_carries_the_key_no_further_than_here",
    ),
    (
        "session.ttl",
        "resilience/clients.rs",
        "clients_that_leave_by_the_hundred_give_everything_back_and_are_billed_for_what_came",
    ),
    ("session.headers", "settings/requests.rs", "sessions_are_named_by_the_headers_that_are_set"),
    (
        "session.store_messages",
        "proxy/messages.rs",
        "messages_are_stored_as_sent_and_received_without_credentials",
    ),
    (
        "session.message_bytes",
        "proxy/messages.rs",
        "messages_are_stored_as_sent_and_received_without_credentials",
    ),
    (
        "session.messages_total_bytes",
        "settings/data.rs",
        "messages_beyond_what_is_kept_in_all_are_removed",
    ),
    (
        "ledger.segment_bytes",
        "settings/data.rs",
        "the_journal_begins_a_new_file_at_the_size_that_is_set",
    ),
    (
        "ledger.max_bytes",
        "resilience/database.rs",
        "a_journal_that_fills_while_the_database_is_away_is_bounded_says_so_and_recovers",
    ),
    ("ledger.batch_rows", "settings/data.rs", "records_are_written_when_a_batch_is_full_or_late"),
    (
        "ledger.flush_interval",
        "settings/data.rs",
        "records_are_written_when_a_batch_is_full_or_late",
    ),
    ("ledger.sync_interval", "settings/fsync.rs", "the_journal_is_synced_as_often_as_is_set"),
    (
        "limits.reservation",
        "limits/last_dollar.rs",
        "of_a_thousand_at_once_strict_lets_no_more_pass_than_the_limit_can_pay",
    ),
    ("limits.on_redis_loss", "nodes/loss.rs", "the_operator_can_choose_to_refuse_or_to_let_pass"),
    ("prices.seed_file", "settings/data.rs", "prices_come_from_the_file_and_the_list_that_are_set"),
    ("prices.sync_url", "settings/data.rs", "prices_come_from_the_file_and_the_list_that_are_set"),
    (
        "prices.unpriced",
        "money/unpriced.rs",
        "without_the_setting_they_are_served_until_a_reload_sets_it",
    ),
    (
        "webhooks.allow_private",
        "settings/admin.rs",
        "webhooks_go_to_private_networks_that_are_allowed",
    ),
    ("instructions.short_file", "settings/requests.rs", "coding_models_get_the_short_instructions"),
    (
        "instructions.long_file",
        "proxy/conversion.rs",
        "official_instructions_are_put_in_by_the_providers_strategy",
    ),
    (
        "time_zone",
        "limits/clocks.rs",
        "a_node_in_another_time_zone_uses_the_clusters_until_it_is_the_only_node",
    ),
    (
        "timeouts.connect",
        "settings/timeouts.rs",
        "a_connection_that_is_not_made_is_given_up_in_time",
    ),
    (
        "timeouts.tls",
        "hostile/handshake.rs",
        "a_provider_that_never_answers_the_tls_handshake_is_given_up_after_timeouts_tls",
    ),
    (
        "timeouts.first_byte_streaming",
        "settings/timeouts.rs",
        "a_reply_that_does_not_begin_or_go_on_is_given_up_in_time",
    ),
    (
        "timeouts.streaming_idle",
        "settings/timeouts.rs",
        "a_reply_that_does_not_begin_or_go_on_is_given_up_in_time",
    ),
    (
        "timeouts.streaming_content",
        "proxy/liveness.rs",
        "a_stream_that_only_pings_is_given_up_after_its_own_bound",
    ),
    (
        "timeouts.request_non_streaming",
        "settings/timeouts.rs",
        "a_reply_that_does_not_begin_or_go_on_is_given_up_in_time",
    ),
    (
        "timeouts.upstream_keepalive",
        "settings/timeouts.rs",
        "an_idle_connection_to_a_provider_is_kept_so_long",
    ),
    ("retry.deadline", "proxy/failover_classes.rs", "no_attempt_is_begun_after_the_deadline"),
    (
        "retry.switch_on_upstream_auth",
        "proxy/failover_classes.rs",
        "the_operators_own_credential_at_fault_switches_where_configured",
    ),
    ("retry.max_cooldown", "proxy/failover_classes.rs", "a_cooldown_is_observed_and_bounded"),
    (
        "breaker.count_network_errors",
        "proxy/failover_classes.rs",
        "network_errors_open_a_circuit_only_where_configured",
    ),
    (
        "breaker.disable_after_failed_probes",
        "proxy/switch_off.rs",
        "a_provider_is_disabled_after_so_many_failed_probes_and_an_administrator_enables_it",
    ),
    ("headers.pass_request", "settings/requests.rs", "headers_that_are_named_go_both_ways"),
    ("headers.pass_response", "settings/requests.rs", "headers_that_are_named_go_both_ways"),
    ("headers.drop_request", "settings/requests.rs", "headers_that_are_named_go_neither_way"),
    ("headers.drop_response", "settings/requests.rs", "headers_that_are_named_go_neither_way"),
    ("log.level", "proxy/hooks.rs", "an_answered_request_and_a_refused_one"),
    ("log.format", "settings/process.rs", "the_log_is_written_as_is_set"),
    ("log.access", "settings/process.rs", "the_log_is_written_as_is_set"),
    (
        "shutdown.grace",
        "resilience/stop.rs",
        "a_stop_that_takes_too_long_cuts_what_still_runs_and_records_it",
    ),
];

#[test]
fn every_setting_names_a_test_that_shows_it() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (mut faults, mut named) = (Vec::new(), BTreeSet::new());
    for (setting, file, test) in [listeners::SHOWN, telemetry::SHOWN, OTHERS].concat() {
        if !named.insert(setting) {
            faults.push(format!("{setting} stands here twice"));
        }
        let text = std::fs::read_to_string(tests.join(file)).unwrap_or_default();
        if !text.contains(&format!("fn {test}(")) {
            faults.push(format!("{setting}: tests/{file} has no test {test}"));
        }
    }
    let all: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.path).collect();
    faults.extend(
        all.difference(&named)
            .map(|setting| format!("{setting}: which test fails if it is ignored?")),
    );
    faults.extend(named.difference(&all).map(|setting| format!("{setting} is not a setting")));
    assert!(faults.is_empty(), "{faults:#?}");
}
