"""Backlog analytics on Spark over JDBC. PySpark is loaded when a session is first asked for, and no earlier."""
