"""What stands before a reply: the server's certificate, the key, and what a probe finds."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from openai_samples import HOUR, REPLY, Start, asked, good, never_a_byte, question, refused
from stub_server import Behaviour

from compass_edge.engines.openai import Endpoint, OpenAiModel, probe
from compass_edge.errors import CompassError, EnvironmentFault

pytest_plugins = ["openai_server"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    made = [
        *(
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        )
    ]
    made += [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(path),
        "-out",
        f"{path}.crt",
    ]
    subprocess.run(made, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def test_tls(start: Start, certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = start(good, tls=context)
    url = f"https://localhost:{server.port}/v1"
    message = refused(OpenAiModel(Endpoint(url, "stub")))
    assert "could not be trusted: self-signed certificate." in message
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert asked(OpenAiModel(Endpoint(url, "stub"))) == REPLY
    assert "could not be trusted" in refused(OpenAiModel(Endpoint(url.replace("localhost", "127.0.0.1"), "stub")))
    server.behaviours = [never_a_byte]
    chats = len(server.chats)
    assert OpenAiModel(Endpoint(url, "stub", deadline_s=HOUR)).ask(
        [question()], lambda i, t: None, lambda: len(server.chats) > chats
    ) == [""]


def test_a_key_is_sent_and_never_told(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(
        good, lambda e: e.whole(f'{{"error": "Wrong key {e.headers["authorization"]}"}}', "401 Unauthorized")
    )
    endpoint = Endpoint(server.url, "stub", api_key_env="COMPASS_TEST_KEY")
    monkeypatch.delenv("COMPASS_TEST_KEY", raising=False)
    with pytest.raises(EnvironmentFault, match="COMPASS_TEST_KEY, which is not set"):
        OpenAiModel(endpoint)
    assert "COMPASS_TEST_KEY, which is not set" in probe(endpoint).trouble
    server.other["/v1/models"] = lambda e: e.whole(e.headers["authorization"], "401 Unauthorized")
    monkeypatch.setenv("COMPASS_TEST_KEY", "two\nlines")
    with pytest.raises(EnvironmentFault, match="printable ASCII"):
        OpenAiModel(endpoint)
    monkeypatch.setenv("COMPASS_TEST_KEY", "sk-secret")
    model = OpenAiModel(endpoint)
    assert asked(model) == REPLY
    assert server.chats[0].headers["authorization"] == "Bearer sk-secret"
    with pytest.raises(CompassError, match=r"Wrong key Bearer \*\*\*") as caught:
        asked(model)
    assert "said: Bearer ***. (Its key" in probe(endpoint).trouble
    assert "secret" not in f"{caught.value} {endpoint} {model.name} {model} {probe(endpoint)}"


@pytest.mark.parametrize(
    ("path", "behave", "said"),
    [
        ("/v1/models", lambda e: e.whole("[]"), "was to list its models, and this came instead: []."),
        ("/v1/models", lambda e: e.whole("<html>", kind="text/html"), "a page of HTML."),
        ("/v1/models", lambda e: e.whole("no", "403 Forbidden"), "answered 403 Forbidden and said: no."),
        ("/v1/models", lambda e: e.whole('{"data": [{"id": "other"}]}'), "'stub', and it serves: other."),
        ("/v1/models", lambda e: e.whole('{"data": []}'), "it serves: none."),
        ("/v1/models", never_a_byte, "was to answer within 0.3 s"),
        (
            "/health",
            lambda e: e.whole('{"error": {"message": "Loading model"}}', "503 Busy"),
            "not ready: Loading model.",
        ),
        ("/health", lambda e: e.whole("", "404 Not Found"), ""),
    ],
)
def test_probe(start: Start, path: str, behave: Behaviour, said: str) -> None:
    server = start(good)
    endpoint = Endpoint(server.url, "stub", deadline_s=0.3 if behave is never_a_byte else HOUR)
    assert probe(endpoint).ok
    assert probe(endpoint).models == ("stub",)
    assert probe(endpoint).health == "ok"
    server.other[path] = behave
    found = probe(endpoint)
    assert found.ok == (not said)
    assert said in found.trouble
