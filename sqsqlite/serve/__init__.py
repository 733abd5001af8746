"""The SQS endpoint: HTTP in front of the same actions that the embedded API calls."""
