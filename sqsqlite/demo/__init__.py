# SPDX-License-Identifier: Apache-2.0
"""The program behind `sqsqlite demo`: workers on real input, one of them killed, and a sum that must add up."""
