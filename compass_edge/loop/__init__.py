"""The loop: one event stream, one pure decision, many executors."""
