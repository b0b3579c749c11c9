import pytest

from agentd.workspace.secrets import is_secret


@pytest.mark.parametrize(
    "path",
    [
        ".env", ".env.local", "a/.ENV", ".envrc", "prod.env", "id_rsa", "keys/id_ed25519",
        "server.pem", "a.key", ".netrc", ".npmrc", ".pypirc", ".aws/credentials",
        "home/.ssh/config", ".gnupg/x/y", "credentials", ".git-credentials", ".git/config",
        ".docker/config.json", ".kube/config", ".config/gcloud/x", "x.tfvars", ".ssh",
    ],
)  # fmt: skip
def test_a_file_that_holds_secrets_is_known_by_its_name(path: str) -> None:
    assert is_secret(tuple(path.split("/")))


@pytest.mark.parametrize(
    "path",
    [
        ".env.example", ".env.sample", ".env.template", "example.env", "id_rsa.pub",
        "environment.py", "config", "src/key.py", "pem.txt", "keys/a.py", "config.json",
        ".docker/Dockerfile", "credentials.py", "src/gcloud/x.py",
    ],
)  # fmt: skip
def test_an_ordinary_file_is_not_taken_for_a_secret(path: str) -> None:
    assert not is_secret(tuple(path.split("/")))


def test_the_root_is_no_secret() -> None:
    assert not is_secret(())
