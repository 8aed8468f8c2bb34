"""What is believed: one task step by step, recorded beside the agent that plays it, and a page that shows it."""
