"""The SQS endpoint: HTTP in front of the same operations that the embedded API calls."""
