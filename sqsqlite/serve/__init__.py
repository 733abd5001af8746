# SPDX-License-Identifier: Apache-2.0
"""The SQS endpoint: HTTP in front of the same actions that the embedded API calls."""
