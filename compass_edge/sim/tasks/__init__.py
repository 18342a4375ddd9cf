"""The 24 tasks, eight of each form. `catalogue` has them by name."""
