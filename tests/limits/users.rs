//! The list of users is the administrators'; others read themselves.

use serde_json::{Value, json};

use crate::proxy::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_asks_for_the_list_of_users_is_refused_and_reads_themselves_elsewhere() {
    let stage = Stage::bare(&[]).await;
    let edit = json!({"keyId": stage.key_id, "canLoginWebUi": true});
    stage.gateway.admin("keys/editKey", edit).await;
    let call = async |path: &str, key: &str| {
        let url = format!("{}/api/{path}", stage.gateway.admin);
        let answer = stage.gateway.client.post(url).bearer_auth(key).json(&json!({})).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, refused) = call("actions/users/getUsers", &stage.key).await;
    assert_eq!((status, &refused["errorCode"]), (403, &json!("PERMISSION_DENIED")), "{refused}");
    let (status, who) = call("auth/whoami", &stage.key).await;
    let user = &who["data"]["user"];
    assert_eq!((status, &user["id"], &user["name"]), (200, &json!(stage.user_id), &json!("ada")), "{who}");
    assert_eq!(user["keys"][0]["id"], json!(stage.key_id));
    assert!(!who.to_string().contains(&stage.key), "the key is masked");
    // A key that may not log in reads its own usage only.
    stage.gateway.admin("keys/editKey", json!({"keyId": stage.key_id, "canLoginWebUi": false})).await;
    assert_eq!(call("actions/users/getUsers", &stage.key).await.0, 403);
    assert_eq!(call("auth/whoami", &stage.key).await.1["data"]["user"], Value::Null);
}
