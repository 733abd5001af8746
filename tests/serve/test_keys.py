# SPDX-License-Identifier: Apache-2.0
"""Access keys in the queue's file, and in a file of credentials."""

import pytest

from sqsqlite.access.key_file import BadKeyFile, KeyFile
from sqsqlite.access.keys import add_key, find_credentials, has_keys, list_keys, remove_key, rotate_key
from sqsqlite.errors import InvalidParameterValue

ACCOUNT = "111122223333"


def listed(store):
    with store.reading() as connection:
        return list_keys(connection)


def test_key_is_found_by_its_id_with_account_user_and_secret(store):
    assert not has_keys(store)
    made = store.write(add_key, ACCOUNT, "worker")
    found = find_credentials(store, made.access_key_id)
    assert (found.account_id, found.user_name) == (ACCOUNT, "worker")
    assert found.secret_access_key == made.secret_access_key
    assert has_keys(store)
    assert find_credentials(store, made.access_key_id + "X") is None
    assert find_credentials(store, "") is None


def test_key_ids_and_secrets_have_amazons_form_and_are_unique(store):
    made = [store.write(add_key, ACCOUNT, "") for _ in range(20)]
    assert {len(key.access_key_id) for key in made} == {20}
    assert {len(key.secret_access_key) for key in made} == {40}
    assert len({key.access_key_id for key in made}) == len({key.secret_access_key for key in made}) == 20


def test_keys_are_listed_without_secrets(store):
    made = store.write(add_key, ACCOUNT, "worker")
    [key] = listed(store)
    assert (key.access_key_id, key.account_id, key.user_name) == (made.access_key_id, ACCOUNT, "worker")
    assert (key.created_at, key.expires_at) == (store.clock.now_ms(), None)
    assert made.secret_access_key not in repr(key)


@pytest.mark.parametrize("account_id", ["", "1234", "12345678901x", "1111222233334", "١١١١٢٢٢٢٣٣٣٣"])
def test_account_is_twelve_digits(store, account_id):
    with pytest.raises(InvalidParameterValue, match="twelve digits"):
        store.write(add_key, account_id, "")
    assert listed(store) == []


@pytest.mark.parametrize("user_name", ["a b", "a/b", "é", "x" * 65])
def test_user_is_a_valid_iam_name(store, user_name):
    with pytest.raises(InvalidParameterValue, match="UserName"):
        store.write(add_key, ACCOUNT, user_name)


def test_rotated_key_holds_until_the_end_of_its_grace(store, clock):
    old = store.write(add_key, ACCOUNT, "worker")
    new = store.write(rotate_key, old.access_key_id, 60)
    assert new.access_key_id != old.access_key_id
    assert (new.account_id, new.user_name) == (ACCOUNT, "worker")
    clock.advance(seconds=59.999)
    assert find_credentials(store, old.access_key_id) is not None
    clock.advance(seconds=0.001)
    assert find_credentials(store, old.access_key_id) is None
    assert find_credentials(store, new.access_key_id) is not None


def test_rotation_without_grace_removes_the_old_key_at_once(store):
    old = store.write(add_key, ACCOUNT, "")
    new = store.write(rotate_key, old.access_key_id, 0)
    assert find_credentials(store, old.access_key_id) is None
    assert [key.access_key_id for key in listed(store)] == [new.access_key_id]


def test_second_rotation_does_not_lengthen_a_grace(store, clock):
    old = store.write(add_key, ACCOUNT, "")
    store.write(rotate_key, old.access_key_id, 60)
    store.write(rotate_key, old.access_key_id, 3600)
    clock.advance(seconds=60)
    assert find_credentials(store, old.access_key_id) is None


def test_expired_keys_count_as_keys_until_the_next_one_is_made(store, clock):
    old = store.write(add_key, ACCOUNT, "")
    new = store.write(rotate_key, old.access_key_id, 60)
    store.write(remove_key, new.access_key_id)
    clock.advance(seconds=60)
    assert [key.access_key_id for key in listed(store)] == [old.access_key_id]
    assert has_keys(store)
    with pytest.raises(InvalidParameterValue, match="This key does not exist"):
        store.write(rotate_key, old.access_key_id, 0)
    other = store.write(add_key, ACCOUNT, "")
    assert [key.access_key_id for key in listed(store)] == [other.access_key_id]


@pytest.mark.parametrize("grace", [-1, 31_536_001])
def test_grace_is_up_to_a_year(store, grace):
    old = store.write(add_key, ACCOUNT, "")
    with pytest.raises(InvalidParameterValue, match="Grace"):
        store.write(rotate_key, old.access_key_id, grace)
    assert len(listed(store)) == 1


def test_removed_key_is_no_longer_accepted(store):
    made = store.write(add_key, ACCOUNT, "")
    store.write(remove_key, made.access_key_id)
    assert find_credentials(store, made.access_key_id) is None
    assert not has_keys(store)
    with pytest.raises(InvalidParameterValue, match="This key does not exist"):
        store.write(remove_key, made.access_key_id)


# --- the file of credentials

FILE = """
[default]
aws_access_key_id = ROOT
aws_secret_access_key = root/secret+=%(x)s
region = eu-north-1

[worker]
aws_access_key_id = WORKER
aws_secret_access_key = worker-secret
aws_account_id = 111122223333
"""


@pytest.fixture
def credentials(tmp_path):
    path = tmp_path / "credentials"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def test_credentials_file_gives_keys_by_section(credentials):
    keys = KeyFile(credentials)
    root, worker = keys.find("ROOT"), keys.find("WORKER")
    assert (root.account_id, root.user_name) == ("000000000000", "")
    assert root.secret_access_key == "root/secret+=%(x)s"
    assert (worker.account_id, worker.user_name) == (ACCOUNT, "worker")
    assert keys.find("root") is None


def test_changed_credentials_file_holds_from_the_next_request(credentials):
    keys = KeyFile(credentials)
    credentials.write_text(FILE.partition("[worker]")[0])
    assert keys.find("WORKER") is None
    assert keys.find("ROOT") is not None


def test_unreadable_credentials_file_gives_no_key_until_it_is_repaired(credentials):
    keys = KeyFile(credentials)
    for broken in ("[worker]\naws_access_key_id = WORKER\n", "no section = 1\n", None):
        if broken is None:
            credentials.unlink()
        else:
            credentials.write_text(broken)
        with pytest.raises(BadKeyFile):
            keys.find("ROOT")
    credentials.write_text(FILE)
    assert keys.find("ROOT") is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("aws_access_key_id = A", "MissingSectionHeaderError"),
        ("[a]\naws_access_key_id = A", "no aws_secret_access_key"),
        ("[a]\naws_secret_access_key = s3cret", "no aws_access_key_id"),
        ("[a]\naws_access_key_id = A\naws_secret_access_key = s3cret\naws_account_id = 12", "twelve digits"),
        (2 * "[{}]\naws_access_key_id = A\naws_secret_access_key = s3cret\n", "another section"),
        ("[a]\ns3cret", "ParsingError"),
        (
            "[a]\naws_access_key_id = s3cret/+\naws_secret_access_key = s3cret",
            r"\[a\]: aws_access_key_id must be",
        ),
        ("[a]\naws_access_key_id = é\naws_secret_access_key = s3cret", r"\[a\]: aws_access_key_id must be"),
        (
            "[a]\naws_access_key_id = A\naws_secret_access_key = s3cret\naws_session_token = s3cret",
            "aws_session_token is not allowed",
        ),
        ("[a b]\naws_access_key_id = A\naws_secret_access_key = s3cret", r"\[a b\].* UserName is invalid"),
    ],
)
def test_credentials_file_is_refused_without_showing_a_secret(tmp_path, text, reason):
    path = tmp_path / "credentials"
    path.write_text(text.format("a", "b"))
    with pytest.raises(BadKeyFile, match=reason) as refused:
        KeyFile(path)
    assert "s3cret" not in str(refused.value)
    assert str(path) in str(refused.value)


def test_sections_without_a_key_are_ignored(credentials):
    credentials.write_text(
        FILE + "\n[admin role]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = default\n"
    )
    assert KeyFile(credentials).find("ROOT") is not None


def test_missing_credentials_file_is_refused(tmp_path):
    with pytest.raises(BadKeyFile, match="No such file"):
        KeyFile(tmp_path / "nowhere")
