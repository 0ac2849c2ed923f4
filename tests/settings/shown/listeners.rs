//! The tests that show the settings of the listeners: `proxy.*`, `admin.*`, `metrics.*`.

use super::Shown;

/// One line per setting.
pub const SHOWN: &[Shown] = &[
    ("proxy.addr", "resilience/start.rs", "an_upgrade_may_come_with_a_new_address"),
    ("proxy.tls.cert", "proxy/listeners.rs", "tls_with_http2_and_http1"),
    ("proxy.tls.key", "proxy/listeners.rs", "tls_with_http2_and_http1"),
    ("proxy.h2c", "proxy/bodies.rs", "http2_without_a_length"),
    ("proxy.threads", "settings/process.rs", "the_proxy_has_as_many_threads_as_are_set"),
    (
        "proxy.expose_admin",
        "proxy/listeners.rs",
        "the_administration_is_on_the_proxys_origin_only_where_that_is_set",
    ),
    ("proxy.upstream_pool_size", "settings/requests.rs", "the_pool_keeps_so_many_idle_connections"),
    ("proxy.upgrade_socket", "settings/process.rs", "an_upgrade_goes_over_the_socket_that_is_set"),
    ("proxy.max_body_bytes", "proxy/bodies.rs", "beyond_the_bound_is_413_in_every_framing"),
    (
        "proxy.max_inflight_body_bytes",
        "proxy/body_budget.rs",
        "bodies_beyond_the_budget_are_refused_until_it_has_space",
    ),
    (
        "proxy.max_json_depth",
        "settings/requests.rs",
        "requests_are_nested_as_deeply_as_is_set_and_no_deeper",
    ),
    ("proxy.request_read_timeout", "proxy/bodies.rs", "a_body_that_trickles_in_is_given_up"),
    (
        "proxy.reply_write_timeout",
        "resilience/clients.rs",
        "a_client_that_reads_nothing_any_more_is_given_up_and_billed",
    ),
    ("proxy.keepalive", "proxy/liveness.rs", "a_client_that_waits_gets_pings_of_its_own_format"),
    (
        "proxy.keepalive_timeout",
        "proxy/edge.rs",
        "an_idle_connection_is_closed_after_its_first_request_too",
    ),
    ("proxy.head_timeout", "proxy/edge.rs", "a_head_that_drips_is_refused_whichever_request_it_is"),
    ("proxy.max_head_bytes", "settings/requests.rs", "heads_are_as_large_as_is_set_and_no_larger"),
    (
        "proxy.max_connections",
        "proxy/edge.rs",
        "connections_above_the_limit_are_refused_and_the_others_go_on",
    ),
    (
        "proxy.max_connections_per_address",
        "hostile/connections.rs",
        "one_address_does_not_take_the_places_of_the_others",
    ),
    (
        "proxy.keepalive_requests",
        "proxy/edge.rs",
        "a_connection_ends_with_notice_after_its_last_request",
    ),
    ("proxy.abort", "proxy/aborts.rs", "drained_replies_are_billed_exactly_in_every_format"),
    ("proxy.abort_drain", "proxy/aborts.rs", "draining_is_bounded_in_time_and_bytes"),
    ("proxy.abort_drain_bytes", "proxy/aborts.rs", "draining_is_bounded_in_time_and_bytes"),
    ("proxy.provider_headers", "proxy/account_headers.rs", "an_operator_may_let_them_pass"),
    (
        "proxy.overhead_header",
        "settings/requests.rs",
        "replies_name_the_overhead_where_that_is_set",
    ),
    (
        "admin.addr",
        "resilience/start.rs",
        "a_second_gateway_on_the_same_addresses_does_not_disturb_the_first",
    ),
    ("admin.max_connections", "hostile/connections.rs", "the_administration_has_separate_limits"),
    (
        "admin.max_connections_per_address",
        "hostile/connections.rs",
        "the_administration_has_separate_limits",
    ),
    ("admin.tls.cert", "settings/admin.rs", "the_administration_speaks_tls_where_that_is_set"),
    ("admin.tls.key", "settings/admin.rs", "the_administration_speaks_tls_where_that_is_set"),
    ("admin.app_url", "settings/admin.rs", "the_address_of_the_web_ui_is_an_origin_that_may_write"),
    ("admin.secure_cookies", "settings/admin.rs", "cookies_are_secure_where_that_is_set"),
    ("trusted_proxies", "hostile/connections.rs", "a_trusted_proxy_may_hold_as_many_as_there_are"),
    ("metrics.per_user", "settings/requests.rs", "users_and_keys_have_metrics_where_that_is_set"),
    ("metrics.per_key", "settings/requests.rs", "users_and_keys_have_metrics_where_that_is_set"),
    (
        "metrics.addr",
        "resilience/start.rs",
        "a_second_gateway_on_the_same_addresses_does_not_disturb_the_first",
    ),
];
