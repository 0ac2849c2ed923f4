"""A client that uses nothing but the API's own document: it creates users, keys, providers and prices, sends requests,
reads all figures, and deletes everything again.

It finds operations by operationId, validates bodies against the document's schema before it sends them, and requires
that the document names the status of each reply.
"""

import time
import uuid

import pytest
from conftest import call
from openapi_spec_validator import OpenAPIV31SpecValidator, validate

MODEL_PRICE = {"input_cost_per_token": 0.000002, "output_cost_per_token": 0.000004}


class Client:
    """Calls operations as the document describes them."""

    def __init__(self, services):
        self.services = services
        status, self.document = call(f"{services.admin}/api/actions/openapi.json")
        assert status == 200 and self.document["openapi"] == "3.1.0"
        self.operations = {
            described["operationId"]: (verb, path, described)
            for path, verbs in self.document["paths"].items()
            for verb, described in verbs.items()
        }

    def ask(self, operation, **body):
        verb, path, described = self.operations[operation]
        if verb == "post":
            schema = described["requestBody"]["content"]["application/json"]["schema"]
            unknown = set(body) - set(schema["properties"])
            missing = set(schema.get("required", [])) - set(body)
            assert not unknown and not missing, f"{operation}: unknown {unknown}, missing {missing}"
        headers = {"authorization": f"Bearer {self.services.admin_token}"}
        status, reply = call(self.services.admin + path, body if verb == "post" else None, headers)
        assert str(status) in described["responses"], f"{operation}: {status} is not in the document"
        assert status == 200, f"{operation}: {status} {reply}"
        return reply.get("data") if isinstance(reply, dict) and "ok" in reply else reply


@pytest.fixture
def client(services):
    if not services.admin:
        pytest.skip("the administration is out of reach")
    return Client(services)


def test_the_document_is_one(client):
    validate(client.document, cls=OpenAPIV31SpecValidator)


def requests_of(client, key_id, count):
    """The key's log entries, once there are `count`."""
    end = time.monotonic() + 10
    while True:
        page = client.ask("usage_logs_getUsageLogs", keyId=key_id)
        if page["total"] >= count or time.monotonic() > end:
            assert page["total"] == count, page
            return page
        time.sleep(0.05)


def test_the_document_is_enough(services, client):
    mark = uuid.uuid4().hex[:8]
    model, group = f"document-{mark}", f"group-{mark}"
    client.ask("model_prices_upsertModelPrice", modelName=model, priceData=MODEL_PRICE)
    provider = client.ask("providers_addProvider", name=f"up-{mark}", url=services.mock, key="upstream-credential-123",
                          group_tag=group, allowed_models=[model])["id"]
    made = client.ask("users_addUser", name=f"user-{mark}", providerGroup=group)
    user = made["user"]["id"]
    key = client.ask("keys_addKey", userId=user, name="second", providerGroup=group, limitDailyUsd=5)
    assert client.ask("providers_testProvider", providerId=provider, model=model)["ok"]

    body = {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "Say hello."}]}
    for _ in range(3):
        status, reply = call(f"{services.proxy}/v1/messages", body, {"x-api-key": key["generatedKey"]})
        assert status == 200, reply
    page = requests_of(client, key["id"], 3)
    logs = page["logs"]
    cost = sum(entry["inputTokens"] * 2e-6 + entry["outputTokens"] * 4e-6 for entry in logs)
    assert cost > 0 and abs(page["summary"]["costUsd"] - cost) < 1e-12
    usage = client.ask("keys_getKeyLimitUsage", keyId=key["id"])
    assert abs(usage["costDaily"]["current"] - cost) < 1e-12 and usage["costDaily"]["limit"] == 5
    figures = {figure["keyId"]: figure for figure in client.ask("keys_getKeysWithStatistics", userId=user)}
    assert figures[key["id"]]["todayCallCount"] == 3
    assert client.ask("overview_getOverviewData")["todayRequests"] >= 3
    audited = client.ask("audit_getAuditLog", target=f"provider {provider}")["entries"]
    assert [entry["action"] for entry in audited] == ["providers.testProvider", "providers.addProvider"]

    client.ask("keys_removeKey", keyId=key["id"])
    assert call(f"{services.proxy}/v1/messages", body, {"x-api-key": key["generatedKey"]})[0] == 401
    client.ask("users_removeUser", userId=user)
    client.ask("providers_removeProvider", providerId=provider)
    client.ask("model_prices_deleteModelPrice", modelName=model)
    assert user not in [found["id"] for found in client.ask("users_getUsers")]
    assert provider not in [found["id"] for found in client.ask("providers_getProviders")]
