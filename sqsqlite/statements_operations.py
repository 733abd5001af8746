"""The SQL of the operator's commands: backup, restore, check, dump, load, migrations.

Apart from `statements.py`, because the rule there is the opposite one: these read whole tables, on purpose, and none
of them stands on the way of a message.
"""

# --- schema -----------------------------------------------------------------------------------------------------

LIST_SCHEMA_OBJECTS = r"""
-- Our tables, indexes, views and triggers, and the text each was made by. Automatic indexes have none.
SELECT type, name, sql FROM sqlite_schema WHERE name LIKE 'sqs\_%' ESCAPE '\' ORDER BY type, name
"""

# --- restore: what a copy must not share with its original ------------------------------------------------------

FORGET_BOOT = """
-- The clock's offset belongs to the machine and boot of the original.
DELETE FROM sqs_meta WHERE name = 'boot'
"""

RETURN_IN_FLIGHT = """
-- Their handles died with the secret: nobody could delete them, so nobody should have to wait for them.
UPDATE sqs_leases SET visible_at = 0 WHERE visible_at > 0 AND token IS NOT NULL
"""

COUNT_NONE_IN_FLIGHT = """
UPDATE sqs_queue_counts SET in_flight = 0 WHERE in_flight <> 0
"""

REOPEN_GROUPS = """
-- A group waits only for a delay of its first message, by sqs_ix_leases_group.
UPDATE sqs_message_groups AS g
SET head_visible_at = coalesce(
    (SELECT l.visible_at FROM sqs_leases AS l WHERE l.group_key = g.group_key ORDER BY l.id LIMIT 1),
    g.head_visible_at
)
"""

FORGET_RECEIVE_ATTEMPTS = """
-- They would answer a repeated receive with dead handles.
DELETE FROM sqs_receive_attempts
"""

RELEASE_MOVE_TASKS = """
-- Whoever ran them runs them in the original.
UPDATE sqs_move_tasks SET leased_until_at = 0, lease_token = NULL WHERE finished_at IS NULL
"""

RENEW_COPY = (
    FORGET_BOOT,
    RETURN_IN_FLIGHT,
    COUNT_NONE_IN_FLIGHT,
    REOPEN_GROUPS,
    FORGET_RECEIVE_ATTEMPTS,
    RELEASE_MOVE_TASKS,
)
