"""Engines: what runs the models, here or on a server, and the folders that exported ones are kept in."""
