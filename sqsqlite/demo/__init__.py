"""The program behind `sqsqlite demo`: workers on real input, one of them killed, and a sum that must add up."""
