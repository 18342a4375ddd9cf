"""What runs exported models, and the folders that these are kept in."""
