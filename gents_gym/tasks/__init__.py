"""What nature draws: task distributions in, batches of tasks out."""
