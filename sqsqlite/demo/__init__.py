"""The demonstration behind `sqsqlite demo`: a queue at real work, a worker killed at it, and a sum that must add up."""
