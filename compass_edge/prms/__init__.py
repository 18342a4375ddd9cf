"""Progress reward models: each asks its own network in the way that it was trained."""
