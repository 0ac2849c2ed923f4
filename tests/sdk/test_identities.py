"""The vendors' own libraries as judges of credentials that are not a stored key: what the gateway sends to a token
endpoint equals what they send.

A library gets a transport that keeps its requests. The gateway's requests are those that the mock received.
"""

import base64
import json
import pathlib
import urllib.parse

import azure.identity
import google.auth.compute_engine._metadata as google_metadata
import google.auth.identity_pool
import google.auth.impersonated_credentials
import google.oauth2.credentials
import pytest
from test_clouds import PEM, Answer, Recorder, form, token_request

CLOUD = "https://www.googleapis.com/auth/cloud-platform"
SCOPE = "https://cognitiveservices.azure.com/.default"
SUBJECT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
CERTIFICATE = (pathlib.Path(__file__).parents[1] / "proxy/clouds/certificate.pem").read_text()
# What azure-identity sends beyond the standard: its own name and figures.
OWN = {"client_info", "x-client-sku", "x-client-ver", "x-client-os", "x-client-cpu"}


class GoogleRecorder:
    """Answers what google-auth asks, and keeps it."""

    def __init__(self):
        self.requests = []

    def __call__(self, url, method="GET", body=None, headers=None, **_):
        text = body.decode() if isinstance(body, bytes) else body
        self.requests.append({"path": urllib.parse.urlparse(url).path, "method": method, "body": text,
                              "headers": {name.lower(): value for name, value in (headers or {}).items()}})
        return GoogleAnswer()

    def forms(self):
        return [dict(urllib.parse.parse_qsl(one["body"])) for one in self.requests]


class GoogleAnswer:
    status = 200
    headers = {"content-type": "application/json", "metadata-flavor": "Google"}
    data = json.dumps({"access_token": "t", "accessToken": "t", "expires_in": 3599, "token_type": "Bearer",
                       "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                       "expireTime": "2100-01-01T00:00:00Z"}).encode()


def vertex(services):
    return {"url": f"{services.mock}/v1/projects/p/locations/global/publishers/anthropic", "auth": "gcp-service-account"}


def foundry(services):
    return {"url": f"{services.mock}/anthropic", "auth": "azure-entra"}


def test_google_user(services):
    user = {"client_id": "id-1", "client_secret": "s~1", "refresh_token": "r/1", "token_uri": f"{services.mock}/google/token"}
    ours = token_request(services, **vertex(services), key=json.dumps(user | {"type": "authorized_user"}))
    recorder = GoogleRecorder()
    google.oauth2.credentials.Credentials(None, **user).refresh(recorder)
    assert form(ours) == recorder.forms()[0]
    assert ours["path"] == recorder.requests[0]["path"]


@pytest.mark.parametrize("login", [{}, {"client_id": "id", "client_secret": "secret"}])
def test_google_federation(services, tmp_path, login):
    (tmp_path / "subject").write_text(SUBJECT)
    info = {"type": "external_account", "audience": "//iam.googleapis.com/pool", "token_url": f"{services.mock}/sts/token",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "credential_source": {"file": str(tmp_path / "subject")}} | login
    ours = token_request(services, **vertex(services), key=json.dumps(info))
    recorder = GoogleRecorder()
    google.auth.identity_pool.Credentials.from_info(info, scopes=[CLOUD]).refresh(recorder)
    theirs = recorder.requests[0]
    assert form(ours) == recorder.forms()[0]
    assert ours["path"] == theirs["path"]
    assert ours["headers"].get("authorization") == theirs["headers"].get("authorization")


def test_google_impersonation(services):
    source = {"client_id": "id-1", "client_secret": "s~1", "refresh_token": "r/1", "token_uri": f"{services.mock}/google/token"}
    account = "a@p.iam.gserviceaccount.com"
    info = {"type": "impersonated_service_account", "source_credentials": source | {"type": "authorized_user"},
            "delegates": ["d@p"],
            "service_account_impersonation_url": f"{services.mock}/v1/projects/-/serviceAccounts/{account}:generateAccessToken"}
    ours = token_request(services, **vertex(services), key=json.dumps(info))
    recorder = GoogleRecorder()
    judge = google.auth.impersonated_credentials.Credentials(
        google.oauth2.credentials.Credentials(None, **source), account, [CLOUD], delegates=["d@p"])
    judge.refresh(recorder)
    theirs = recorder.requests[-1]
    assert ours["path"] == theirs["path"]
    body = ours["body"] if isinstance(ours["body"], dict) else json.loads(ours["body"])
    assert body == json.loads(theirs["body"])
    assert ours["headers"]["authorization"].startswith("Bearer mock-token-")
    assert theirs["headers"]["authorization"] == "Bearer t"


def test_google_metadata(services):
    ours = token_request(services, **vertex(services), key='{"type": "metadata"}')
    recorder = GoogleRecorder()
    google_metadata.get_service_account_token(recorder)
    theirs = recorder.requests[0]
    assert (ours["method"], ours["path"]) == (theirs["method"], theirs["path"])
    assert ours["headers"]["metadata-flavor"] == theirs["headers"]["metadata-flavor"]


def assertion(fields):
    text = fields.pop("client_assertion")
    header, claims, _ = (text.decode() if isinstance(text, bytes) else text).split(".")
    read = lambda part: json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return read(header), read(claims)


def asked(recorder):
    theirs = recorder.requests[-1]
    return dict(theirs.data if isinstance(theirs.data, dict) else urllib.parse.parse_qsl(theirs.data))


def test_azure_certificate(services):
    info = {"tenant_id": "tenant-1", "client_id": "client-1", "certificate": CERTIFICATE, "private_key": PEM,
            "authority": services.mock}
    ours = form(token_request(services, **foundry(services), key=json.dumps(info)))
    recorder = Recorder()
    azure.identity.CertificateCredential("tenant-1", "client-1", certificate_data=(CERTIFICATE + PEM).encode(),
                                         transport=recorder).get_token(SCOPE)
    theirs = asked(recorder)
    (our_header, our_claims), (header, claims) = assertion(ours), assertion(theirs)
    assert ours == {name: value for name, value in theirs.items() if name not in OWN}
    assert our_header["alg"] in ("PS256", header["alg"])
    if "x5t#S256" in header:
        assert our_header["x5t#S256"] == header["x5t#S256"]
    assert our_claims["exp"] - our_claims["iat"] == claims["exp"] - claims["iat"]
    # The audience is the endpoint that each of them asks.
    assert our_claims.pop("aud") == claims.pop("aud").replace("https://login.microsoftonline.com", services.mock)
    differing = {"jti", "exp", "nbf", "iat"}
    assert set(claims) - differing <= set(our_claims)
    assert all(our_claims[name] == claims[name] for name in set(claims) - differing)


def test_azure_workload_identity(services, tmp_path):
    (tmp_path / "token").write_text(SUBJECT)
    info = {"source": "workload_identity", "tenant_id": "tenant-1", "client_id": "client-1",
            "token_file": str(tmp_path / "token"), "authority": services.mock}
    ours = form(token_request(services, **foundry(services), key=json.dumps(info)))
    recorder = Recorder()
    azure.identity.WorkloadIdentityCredential(tenant_id="tenant-1", client_id="client-1",
                                              token_file_path=str(tmp_path / "token"), transport=recorder).get_token(SCOPE)
    assert ours == {name: value for name, value in asked(recorder).items() if name not in OWN}


class ImdsRecorder(Recorder):
    """Answers as the metadata service does."""

    def send(self, request, **_):
        self.requests.append(request)
        return Answer({"access_token": "t", "expires_in": "3599", "expires_on": "4102444800", "token_type": "Bearer",
                       "resource": "https://cognitiveservices.azure.com"})


@pytest.mark.parametrize("identity", [{}, {"client_id": "c-1"}])
def test_azure_managed_identity(services, identity):
    ours = token_request(services, **foundry(services), key=json.dumps({"source": "managed_identity"} | identity))
    recorder = ImdsRecorder()
    azure.identity.ManagedIdentityCredential(**identity, transport=recorder).get_token(SCOPE)
    theirs = urllib.parse.urlparse(recorder.requests[-1].url)
    assert (ours["method"], ours["path"]) == (recorder.requests[-1].method, theirs.path)
    query = {name: values[0] for name, values in urllib.parse.parse_qs(ours["query"]).items()}
    judged = {name: values[0] for name, values in urllib.parse.parse_qs(theirs.query).items()}
    # The version of the interface is each one's own choice.
    assert query.pop("api-version") <= judged.pop("api-version")
    assert query == judged
    assert ours["headers"]["metadata"] == recorder.requests[-1].headers["Metadata"]
