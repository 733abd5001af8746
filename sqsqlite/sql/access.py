# SPDX-License-Identifier: Apache-2.0
"""The SQL of access: keys, and the policies of queues.

The first three run with every request of an endpoint that has keys; the others by command.
"""

SELECT_ACCESS_KEY = """
-- By the primary key, with each request, so that removing a key takes effect at once.
SELECT account_id, user_name, secret_access_key, expires_at
FROM sqs_access_keys
WHERE access_key_id = ?
"""

FIND_ACCESS_KEY = """
-- Whether there is any. By the primary key, whose first entry ends it.
SELECT access_key_id FROM sqs_access_keys WHERE access_key_id > '' LIMIT 1
"""

SELECT_POLICY = """
-- By the unique index on (account_id, name).
SELECT policy FROM sqs_queues WHERE account_id = ? AND name = ?
"""

LIST_ACCESS_KEYS = """
-- Without their secrets.
SELECT access_key_id, account_id, user_name, created_at, expires_at
FROM sqs_access_keys
ORDER BY access_key_id
"""

INSERT_ACCOUNT = """
INSERT INTO sqs_accounts (account_id, created_at) VALUES (:account_id, :now_ms)
ON CONFLICT (account_id) DO NOTHING
"""

INSERT_ACCESS_KEY = """
INSERT INTO sqs_access_keys (access_key_id, account_id, user_name, secret_access_key, created_at)
VALUES (:access_key_id, :account_id, :user_name, :secret_access_key, :now_ms)
"""

EXPIRE_ACCESS_KEY = """
-- By the primary key. A key that ends earlier already keeps its end.
UPDATE sqs_access_keys
SET expires_at = min(coalesce(expires_at, :expires_at), :expires_at)
WHERE access_key_id = :access_key_id
"""

DELETE_ACCESS_KEY = """
DELETE FROM sqs_access_keys WHERE access_key_id = :access_key_id
"""

DELETE_EXPIRED_ACCESS_KEYS = """
DELETE FROM sqs_access_keys WHERE expires_at <= :now_ms
"""
