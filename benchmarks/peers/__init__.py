# SPDX-License-Identifier: Apache-2.0
"""The contestants of the benchmarks: our APIs, the plain SQL that they are compared with, other queues and servers."""
