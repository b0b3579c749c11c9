"""What the model may call; one file per tool."""
