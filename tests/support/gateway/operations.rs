//! Administration operations on a gateway, as the administrator.

use serde_json::{Value, json};

use super::{ADMIN_TOKEN, Gateway};
use crate::support::wait;

impl Gateway {
    /// Calls an administration operation as the administrator: status and envelope.
    pub async fn call(&self, operation: &str, body: Value) -> (u16, Value) {
        let url = format!("{}/api/actions/{operation}", self.admin);
        let answer =
            self.client.post(url).bearer_auth(ADMIN_TOKEN).json(&body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// Calls an operation that must succeed; returns its data.
    pub async fn admin(&self, operation: &str, body: Value) -> Value {
        let (status, answer) = self.call(operation, body).await;
        assert_eq!(
            (status, &answer["ok"]),
            (200, &json!(true)),
            "{operation}: {answer}\n{}",
            self.log()
        );
        answer["data"].clone()
    }

    /// A user with its first key: (user id, key id, key text).
    pub async fn user(&self, fields: Value) -> (i64, i64, String) {
        let data = self.admin("users/addUser", fields).await;
        let key = &data["defaultKey"];
        (
            data["user"]["id"].as_i64().unwrap(),
            key["id"].as_i64().unwrap(),
            key["key"].as_str().unwrap().to_owned(),
        )
    }

    /// A provider; `fields` override the defaults. Returns its id.
    pub async fn provider(&self, kind: &str, url: &str, fields: Value) -> i64 {
        let mut body = json!({"name": format!("{kind}-{}", fastrand::u32(..)), "url": url, "key": "upstream-secret-key",
            "provider_type": kind});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let name = body["name"].clone();
        self.admin("providers/addProvider", body).await;
        let all = self.admin("providers/getProviders", json!({})).await;
        all.as_array().unwrap().iter().find(|p| p["name"] == name).unwrap()["id"].as_i64().unwrap()
    }

    /// Puts exact prices into effect.
    pub async fn prices(&self, table: Value) {
        self.admin(
            "model-prices/uploadPriceTable",
            json!({"jsonContent": table.to_string(), "overwriteManual": true}),
        )
        .await;
    }

    /// The usage log once it has `n` rows, newest first.
    pub async fn logs(&self, n: usize) -> Vec<Value> {
        let page = wait::found(
            || format!("fewer than {n} rows in the usage log:\n{}", self.log()),
            async || {
                let page = self.admin("usage-logs/getUsageLogs", json!({"pageSize": 100})).await;
                (page["total"].as_u64().unwrap() >= n as u64).then_some(page)
            },
        )
        .await;
        assert_eq!(page["total"], n, "more rows than requests");
        page["logs"].as_array().unwrap().clone()
    }
}
