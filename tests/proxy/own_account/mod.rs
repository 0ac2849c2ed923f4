//! A provider that takes the client's own credential (`auth`: `client`): who gets it, who does not,
//! and what such a request costs.

mod cost;
mod errors;
mod places;
mod secrecy;

use serde_json::{Value, json};

use super::fixture::{Fixture, request};
use crate::support::gateway::Gateway;
use crate::support::upstream::Upstream;

/// The developer's own credential.
const OWN: &str = "sk-ant-oat01-developers-own-1f2e3d4c5b6a";
/// The operator's credential at the other provider.
const COMPANY: &str = "sk-company-0123456789";

/// A provider that takes the client's credential, and after it one with a key of the operator's.
struct Bed {
    fixture: Fixture,
    company: Upstream,
    own_id: i64,
    company_id: i64,
}

impl Bed {
    async fn with(env: &[(&str, &str)], fields: Value) -> Self {
        let fixture = Fixture::bare(env).await;
        let company = Upstream::start().await;
        let gateway = &fixture.gateway;
        let own = merged(json!({"name": "own", "auth": "client", "key": "none"}), fields);
        let own_id = gateway.provider("native", &fixture.upstream.url, own).await;
        let other = json!({"name": "company", "key": COMPANY, "priority": 10});
        let company_id = gateway.provider("native", &company.url, other).await;
        Self { fixture, company, own_id, company_id }
    }

    async fn start() -> Self {
        Self::with(&[], json!({})).await
    }

    fn gateway(&self) -> &Gateway {
        &self.fixture.gateway
    }

    /// A request with the gateway's key in its own header.
    fn post(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let url = format!("{}{path}", self.gateway().proxy);
        self.gateway().client.post(url).header("x-tollgate-key", &self.fixture.key).json(body)
    }

    fn ask(&self) -> reqwest::RequestBuilder {
        self.post("/v1/messages", &request("native", false))
    }

    /// The same with the developer's credential.
    fn ask_with_own(&self) -> reqwest::RequestBuilder {
        self.ask().bearer_auth(OWN)
    }

    /// The requests that both upstreams received.
    async fn received(&self) -> [Vec<Value>; 2] {
        [self.fixture.upstream.requests().await, self.company.requests().await]
    }

    /// The newest of so many log entries.
    async fn newest(&self, requests: usize) -> Value {
        self.gateway().logs(requests).await.swap_remove(0)
    }
}

fn merged(mut all: Value, fields: Value) -> Value {
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

/// Status and body of an answer.
async fn answered(ask: reqwest::RequestBuilder) -> (u16, String) {
    let answer = ask.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// What the decision chain says of a provider.
fn said(row: &Value, provider: &str) -> Vec<(String, String)> {
    let text = |step: &Value, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    let steps = row["decisionChain"].as_array().unwrap().iter();
    let of = steps.filter(|step| step["providerName"] == provider);
    of.map(|step| (text(step, "step"), text(step, "detail"))).collect()
}
