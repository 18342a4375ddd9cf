"""Episodes: what a camera filmed, the instruction it was done under, and what is known of its steps."""
