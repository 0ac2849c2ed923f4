//! The list of users is for administrators; others read only themselves.

use serde_json::{Value, json};

use crate::proxy::fixture::Fixture;

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_asks_for_the_list_of_users_is_refused_and_reads_themselves_elsewhere() {
    let fixture = Fixture::bare(&[]).await;
    let edit = json!({"keyId": fixture.key_id, "canLoginWebUi": true});
    fixture.gateway.admin("keys/editKey", edit).await;
    let call = async |path: &str, key: &str| {
        let url = format!("{}/api/{path}", fixture.gateway.admin);
        let answer = fixture
            .gateway
            .client
            .post(url)
            .bearer_auth(key)
            .json(&json!({}))
            .send()
            .await
            .unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, refused) = call("actions/users/getUsers", &fixture.key).await;
    assert_eq!((status, &refused["errorCode"]), (403, &json!("PERMISSION_DENIED")), "{refused}");
    let (status, who) = call("auth/whoami", &fixture.key).await;
    let user = &who["data"]["user"];
    assert_eq!(
        (status, &user["id"], &user["name"]),
        (200, &json!(fixture.user_id), &json!("ada")),
        "{who}"
    );
    assert_eq!(user["keys"][0]["id"], json!(fixture.key_id));
    assert!(!who.to_string().contains(&fixture.key), "the key is masked");
    // A key without web UI access reads only its own usage.
    fixture
        .gateway
        .admin("keys/editKey", json!({"keyId": fixture.key_id, "canLoginWebUi": false}))
        .await;
    assert_eq!(call("actions/users/getUsers", &fixture.key).await.0, 403);
    assert_eq!(call("auth/whoami", &fixture.key).await.1["data"]["user"], Value::Null);
}
