//! Example values by property name, for the document: one small, consistent gateway.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// The time of the examples.
pub(super) const MOMENT: &str = "2026-11-21T04:00:00.000Z";

/// The example for a property of this name in that place: a module of operations or a schema.
/// `null` stands for a usually absent value.
pub(super) fn of(place: &str, name: &str) -> Option<Value> {
    static WORDS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
        let all = [people(), providers(), requests(), figures(), rules(), service(), of_a_place()];
        all.into_iter().filter_map(|some| some.as_object().cloned()).flatten().collect()
    });
    WORDS.get(&format!("{place}.{name}")).or_else(|| WORDS.get(name)).cloned()
}

fn people() -> Value {
    json!({
        "userId": 1,
        "keyExpiresAt": null,
        "userExpiresAt": null,
        "deletedAt": null,
        "readOnly": false,
        "userName": "ada",
        "name": "ada",
        "note": "Research",
        "tags": ["lab"],
        "role": "user",
        "UserRecord.status": "enabled",
        "effectiveStatus": "enabled",
        "providerGroup": "default",
        "keyProviderGroup": "default",
        "rpm": 60,
        "dailyQuota": 5,
        "limitDailyUsd": 5,
        "limit5hUsd": 2,
        "limitWeeklyUsd": 20,
        "limitMonthlyUsd": 50,
        "limitTotalUsd": 500,
        "limitConcurrentSessions": 3,
        "dailyResetTime": "00:00",
        "dailyResetMode": "fixed",
        "allowedModels": ["claude-*"],
        "allowedClients": ["claude-cli"],
        "keyId": 1,
        "keyIds": [1, 2],
        "keyName": "default",
        "key": "sk-0123456789abcdef0123456789abcdef",
        "generatedKey": "sk-0123456789abcdef0123456789abcdef",
        "cacheTtlPreference": "inherit",
        "actor": "admin token",
        "action": "keys.addKey",
        "target": "key 1",
    })
}

fn providers() -> Value {
    json!({
        "providerId": 1,
        "providerName": "main",
        "url": "https://api.example.com",
        "proxyUrl": "http://proxy.example.com:3128",
        "providerType": "native",
        "provider_type": "native",
        "priority": 0,
        "weight": 1,
        "cost_multiplier": 1,
        "costMultiplier": 1,
        "groupTag": "default",
        "modelRedirects": { "claude-sonnet-4-5": "claude-sonnet-4-5-20250929" },
        "instructionsStrategy": "auto",
        "state": "CLOSED",
        "lastProviderName": "main",
        "upstreamModel": "claude-sonnet-4-5",
        "lastError": null,
        "model": "claude-sonnet-4-5",
        "modelName": "claude-sonnet-4-5",
        "models": ["claude-sonnet-4-5"],
        "UnpricedRecord.models": [{ "modelName": "claude-sonnet-4-5", "requests": 42 }],
        "webSearchUsd": 0.01,
        "fastFactor": 6,
        "usFactor": 1.1,
        "priceData": { "mode": "chat", "input_cost_per_token": 0.000_003, "output_cost_per_token": 0.000_015 },
        "jsonContent": "{\"my-model\": {\"mode\": \"chat\", \"input_cost_per_token\": \
                        0.000001, \"output_cost_per_token\": 0.000002}}",
        "source": "manual",
        "added": ["my-model"],
        "updated": [],
        "unchanged": [],
        "failed": [],
        "failures": [],
    })
}

fn requests() -> Value {
    json!({
        "requestId": "019aa51c-7a00-7000-8000-000000000001",
        "sessionId": "5f0c1d7e-2b1a-4c2e-9d61-0a1b2c3d4e5f",
        "apiType": "native",
        "clientFormat": "native",
        "providerFormat": "native",
        "endpoint": "/v1/messages",
        "statusCode": 200,
        "outcome": "completed",
        "attempts": 1,
        "inputTokens": 1200,
        "outputTokens": 300,
        "totalTokens": 1500,
        "costUsd": 0.0081,
        "durationMs": 2400,
        "ttfbMs": 420,
        "clientAddress": "192.0.2.7",
        "userAgent": "claude-cli/2.1.197 (external, cli)",
        "page": 1,
        "pageSize": 50,
        "startTime": 1_795_233_600_000_i64,
        "timeRange": "week",
        "resolution": "day",
        "mode": "users",
        "dataKey": "user-1",
        "window": "per_minute",
        "decisionChain": [],
        "errorClass": null,
        "errorMessage": null,
        "estimated": false,
        "unpriced": false,
        "nextCursor": null,
    })
}

fn rules() -> Value {
    json!({
        "word": "project nightfall",
        "matchType": "contains",
        "description": "Not to leave the house",
        "category": "prompt_limit",
        "pattern": "prompt is too long",
    })
}

fn figures() -> Value {
    json!({
        "current": 1.25,
        "reserved": 0.05,
        "limit": 5,
        "cost": 1.25,
        "totalCost": 12.5,
        "todayCost": 1.25,
        "todayCallCount": 42,
        "callCount": 42,
        "calls": 42,
        "requests": 42,
        "requestCount": 42,
        "todayRequests": 42,
        "yesterdaySamePeriodRequests": 40,
        "yesterdaySamePeriodCost": 1.2,
        "todayTokens": 63_000,
        "avgResponseTime": 2400,
        "yesterdaySamePeriodAvgResponseTime": 2500,
        "todayErrorRate": 0.01,
        "yesterdaySamePeriodErrorRate": 0.02,
        "cacheCreationTokens": 0,
        "cacheReadTokens": 0,
        "latencyMs": 420,
        "resetAt": "2026-11-22T00:00:00.000Z",
        "total": 1,
    })
}

/// Names with a special meaning in a place.
fn of_a_place() -> Value {
    json!({
        "keys.name": "cli",
        "playground.format": "native",
        "playground.body": "{\"model\": \"claude-sonnet-4-5\", \"max_tokens\": 100, \"messages\": \
            [{\"role\": \"user\", \"content\": \"Hello\"}]}",
        "KeyRecord.name": "default",
        "KeyRecord.expiresAt": null,
        "UserRecord.expiresAt": null,
        "KeyRecord.key": "sk-0123…cdef",
        "KeyRecord.status": "enabled",
        "GeneratedKey.name": "cli",
        "BatchResult.requestedCount": 2,
        "BatchResult.updatedCount": 2,
        "BatchResult.updatedIds": [1, 2],
        "RateUsage.current": 3,
        "RateUsage.limit": 60,
        "SessionUsage.current": 1,
        "SessionUsage.limit": 3,
        "providers.name": "main",
        "providers.key": "sk-of-your-account",
        "ProviderRecord.name": "main",
        "ProviderRecord.key": "***",
        "ProviderHealth.failureCount": 0,
        "ProviderHealth.halfOpen": false,
        "ProviderHealth.lastFailureTime": null,
        "ProviderHealth.openUntil": null,
        "ProviderHealth.recoversInMs": null,
        "ProviderHealth.cooldownUntil": null,
        "ProviderTest.status": 200,
        "ProviderTest.message": "Hello.",
        "WebhookTest.status": 204,
        "CleanupRecord.running": false,
        "CleanupRecord.error": null,
        "CleanupRecord.removed": 1200,
        "Health.status": "ok",
        "model-prices.": "claude-sonnet-4-5",
        "my-usage.": "claude-sonnet-4-5",
        "usage-logs.": "claude-sonnet-4-5",
        "ActiveSession.status": "active",
        "SessionDetails.status": "active",

        "MessageRecord.requestTruncated": false,
        "MessageRecord.responseTruncated": false,
    })
}

fn service() -> Value {
    json!({
        "siteTitle": "tollgate",
        "currencyDisplay": "USD",
        "cleanupRetentionDays": 30,
        "cleanupSchedule": "03:00",
        "timezone": "Europe/Berlin",
        "timeZone": "Europe/Berlin",
        "webhookUrl": "https://hooks.example.com/tollgate",
        "circuitBreakerWebhook": "https://hooks.example.com/tollgate",
        "dailyLeaderboardWebhook": "https://hooks.example.com/tollgate",
        "dailyLeaderboardTime": "09:00",
        "costAlertWebhook": "https://hooks.example.com/tollgate",
        "webhookSecret": "a secret of sixteen and more",
        "version": "0.1.0",
        "document": { "version": 1, "users": [{ "name": "ada", "limit_daily_usd": 10 }] },
        "toAdd": 0,
        "toChange": 1,
        "toRemove": 0,
        "PlannedChange.action": "change",
        "PlannedChange.kind": "user",
        "FieldChange.field": "limit_daily_usd",
        "FieldChange.before": 5,
        "FieldChange.after": 10,
        "MadeKey.user": "ada",
        "redirectTo": "/dashboard",
        "proxyPort": 8080,
        "proxyTls": false,
        "error": "name: is required",
        "errorCode": "REQUIRED_FIELD",
    })
}
